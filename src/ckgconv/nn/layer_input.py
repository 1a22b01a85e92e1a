"""What a layer is given about its graphs, checked before anything is computed.

Precisions: x has the dtype of the parameters; under autocast any that autocast converts will do, as in other layers.
Attributes of edges may have any floating dtype. Coordinates and degrees are computed in at least float32.

Legend: N nodes, E edges.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.checks import check_finite, check_floating, check_shape, require
from ckgconv.ops.derivatives import readable
from ckgconv.ops.precision import autocast_converts, wide_dtype


class LayerInput(NamedTuple):
    """Tensors of PyG's conventions."""

    x: Tensor  # [N, in_channels]
    edge_index: Tensor  # [2, E]
    edge_attr: Tensor | None = None  # [E, edge_dim]
    batch: Tensor | None = None  # [N] graph of each node
    edge_weight: Tensor | None = None  # [E]


def checked(given: LayerInput, in_channels: int, edge_dim: int | None, dtype: torch.dtype) -> LayerInput:
    """The input of a layer with parameters of a dtype; attributes become [E, edge_dim], at least float32."""
    x, edge_index, edge_attr = given.x, given.edge_index, given.edge_attr
    check_shape("x", x, (None, in_channels), "give in_channels features per node.")
    check_shape("edge_index", edge_index, (2, None), "give edges as two rows, sources above targets.")
    if readable(x):
        check_finite("x", x)
    if not autocast_converts(x, dtype):
        check_floating("x", x, dtype)
    require(
        (edge_attr is None) == (edge_dim is None),
        f"edge_attr is {'missing' if edge_attr is None else 'given'}, but the layer was built with "
        f"edge_dim={edge_dim}: give both or neither.",
    )
    if edge_attr is None:
        return given
    edge_attr = edge_attr.unsqueeze(-1) if edge_attr.dim() == 1 else edge_attr
    check_shape("edge_attr", edge_attr, (edge_index.shape[1], edge_dim), "give edge_dim attributes per edge.")
    require(
        edge_attr.is_floating_point(),
        f"edge_attr has dtype {edge_attr.dtype}, but attributes are floating-point numbers: convert with "
        f"edge_attr.to({dtype}), types with torch.nn.functional.one_hot first.",
    )
    if readable(edge_attr):
        check_finite("edge_attr", edge_attr)
    return given._replace(edge_attr=edge_attr.to(wide_dtype(dtype)))
