"""The input of a single layer, in any form that PyG's layers take → nodes, edges and graphs in one form.

    adjacency    edge_index, `EdgeIndex`, `SparseTensor` or a sparse tensor of torch (`pairs.adjacency`)
    bipartite    (x_source, x_target) → their union, sources first, on which targets receive:

        nodes 0 … S - 1 are the sources, S … S + T - 1 the targets; a walk from a target steps to its sources, which
        have no incoming edge, so it ends there; the result of the layer is read at the targets

Legend: N = S + T nodes, E edges.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.checks import check_device, check_finite, check_floating, check_shape, require
from ckgconv.graphs import SOURCE_TO_TARGET, Flow, as_int64
from ckgconv.ops.derivatives import readable
from ckgconv.ops.precision import autocast_converts, wide_dtype
from ckgconv.pairs.adjacency import Adjacency, edge_list
from ckgconv.pairs.encoded import GraphInput

Features = Tensor | tuple[Tensor, Tensor]
Sizes = int | tuple[int, int]


class GivenInput(NamedTuple):
    """What a layer is given about its graphs."""

    x: Features  # [N, in_channels], or sources [S, in_channels] and targets [T, in_channels]
    edge_index: Adjacency  # [2, E], or a sparse matrix [T, S]
    edge_attr: Tensor | None = None  # [E, edge_dim]
    batch: Tensor | None = None  # [N] graph of each node
    edge_weight: Tensor | None = None  # [E]


class PlainInput(NamedTuple):
    """The same as tensors over all nodes."""

    x: Tensor  # [N, in_channels]
    edge_attr: Tensor | None  # [E, edge_dim]
    graph: GraphInput


def plain_input(given: GivenInput, flow: Flow) -> PlainInput:
    """Input of any form as tensors over the nodes of one graph, or of one batch."""
    sizes = _sizes(given.x)
    x = joined(given.x)
    graph, stored = plain_graph(given.edge_index, given.batch, given.edge_weight, sizes, flow)
    require(
        stored is None or given.edge_attr is None,
        "edge_attr was given twice, by itself and as the values of the adjacency: give it once.",
    )
    edge_attr = given.edge_attr if stored is None else stored
    if isinstance(edge_attr, Tensor) and edge_attr.dim() == 1:
        edge_attr = edge_attr.unsqueeze(-1)
    check_device(x=x, edge_index=graph.edge_index, edge_attr=edge_attr)
    return PlainInput(x, edge_attr, graph)


def plain_graph(
    adjacency: Adjacency, batch: Tensor | None, edge_weight: Tensor | None, sizes: Sizes, flow: Flow
) -> tuple[GraphInput, Tensor | None]:
    """Edges over all nodes with their weights, and the attributes [E, F] that an adjacency may store instead."""
    edges = edge_list(adjacency, flow)
    bipartite = isinstance(sizes, tuple)
    shape = (sizes[1], sizes[0]) if isinstance(sizes, tuple) else (sizes, sizes)
    require(
        edges.shape is None or edges.shape == shape,
        f"The adjacency is a matrix {list(edges.shape or ())}, expected {list(shape)}: rows are the nodes that "
        f"receive, columns those that send.",
    )
    index, attributes = as_int64(edges.edge_index), None
    if edges.values is not None and edges.values.dim() > 1:
        attributes = edges.values
    elif edges.values is not None:
        require(
            edge_weight is None,
            "edge_weight was given twice, by itself and as the values of the adjacency: give it once.",
        )
        floating = edges.values.is_floating_point()
        edge_weight = edges.values if floating else edges.values.to(torch.get_default_dtype())
    if bipartite:
        index = _union(index, sizes, batch, flow)
    return GraphInput(index, sum(sizes) if isinstance(sizes, tuple) else sizes, batch, edge_weight), attributes


def joined(x: Features) -> Tensor:
    """[N, ·] sources, then targets."""
    return torch.cat(x) if isinstance(x, tuple) else x


def checked_features(given: PlainInput, in_channels: int, edge_dim: int | None, dtype: torch.dtype) -> PlainInput:
    """The input of a layer with parameters of a dtype; attributes of edges become at least float32.

    x has the dtype of the parameters; under autocast any that autocast converts will do, as in other layers. Attributes
    may have any floating dtype.
    """
    x, edge_attr = given.x, given.edge_attr
    check_shape("x", x, (None, in_channels), "give in_channels features per node.")
    if readable(x):
        check_finite("x", x)
    if not autocast_converts(x, dtype):
        check_floating("x", x, dtype)
    check_attributes(edge_attr, edge_dim)
    if edge_attr is None:
        return given
    check_shape("edge_attr", edge_attr, (given.graph.num_edges, edge_dim), "give edge_dim attributes per edge.")
    require(
        edge_attr.is_floating_point(),
        f"edge_attr has dtype {edge_attr.dtype}, but attributes are floating-point numbers: convert with "
        f"edge_attr.to({dtype}), types with torch.nn.functional.one_hot first.",
    )
    if readable(edge_attr):
        check_finite("edge_attr", edge_attr)
    return given._replace(edge_attr=edge_attr.to(wide_dtype(dtype)))


def check_attributes(edge_attr: Tensor | None, edge_dim: int | None) -> None:
    """Refuse attributes that the layer does not read, and their absence where it does."""
    require(
        (edge_attr is None) == (edge_dim is None),
        f"edge_attr is {'missing' if edge_attr is None else 'given'}, but the layer was built with "
        f"edge_dim={edge_dim}: give both or neither.",
    )


def _sizes(x: Features) -> Sizes:
    """N, or S and T."""
    if not isinstance(x, tuple):
        check_shape("x", x, (None, None), "give in_channels features per node.")
        return x.shape[0]
    require(len(x) == 2, f"x is a tuple of {len(x)}: give (x_source, x_target), or one tensor.")
    for name, part in zip(("x_source", "x_target"), x, strict=True):
        remedy = "give features of sources and of targets, zeros where nodes have none."
        check_shape(name, part, (None, None), remedy)
    source, target = x
    require(
        source.shape[1] == target.shape[1],
        f"x_source has {source.shape[1]} features, x_target has {target.shape[1]}, but the kernel multiplies both "
        f"channel by channel: project them to one width first, for example with torch.nn.Linear.",
    )
    return source.shape[0], target.shape[0]


def _union(index: Tensor, sizes: Sizes, batch: Tensor | None, flow: Flow) -> Tensor:
    """[2, E] with targets numbered after all sources."""
    assert isinstance(sizes, tuple)
    require(
        flow == SOURCE_TO_TARGET,
        "x is a pair (x_source, x_target), in which targets receive, but the layer's flow is 'target_to_source': build "
        "it with flow 'source_to_target'.",
    )
    require(
        batch is None,
        "batch was given with a bipartite graph, which would need one for sources and one for targets: make the graphs "
        "homogeneous (HeteroData.to_homogeneous()), or give them one by one.",
    )
    for name, row, size in (("sources", index[0], sizes[0]), ("targets", index[1], sizes[1])):
        worst = int(row.max()) if row.numel() else -1
        require(
            worst < size,
            f"edge_index contains {worst} among its {name}, but there are {size}: give sources above targets, each "
            f"numbered from 0.",
        )
    return torch.stack([index[0], index[1] + sizes[0]])
