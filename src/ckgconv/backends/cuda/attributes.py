"""Embedded attributes of edges as the factors of a product, so that sums over rows precede the projection.

    linear, constant   X Wᵀ: the scatter of X onto pairs moves a few channels, not D
    types              T[a]: rows are read from the table and added to pairs in one launch

Legend: M rows (edges), K columns, V types, D width.
"""

from functools import reduce
from operator import add
from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.streams import Streams
from ckgconv.nn.encoders import AttributeEncoder, ConstantEncoder, LinearEncoder, TypeEncoder
from ckgconv.nn.stem import Edges
from ckgconv.ops.lookup import lookup


class Projected(NamedTuple):
    """X Wᵀ [M, D] as its factors, on rows of pairs."""

    row: Tensor  # [M]
    features: Tensor  # X [M, K]
    matrix: Tensor  # W [D, K]


class Listed(NamedTuple):
    """T[a] [M, D] as table and index, on rows of pairs."""

    row: Tensor  # [M]
    types: Tensor  # a [M]
    table: Tensor  # T [V, D]


AnyEdges = Edges | Projected | Listed


def factored(encoder: AttributeEncoder, features: Tensor | None, row: Tensor, streams: Streams) -> AnyEdges:
    """Embedded attributes of edges on rows [M] by their factors, or as they are where several tables are summed."""
    edges = row.shape[0]
    if isinstance(encoder, ConstantEncoder):
        return Projected(row, encoder.vector.new_ones(edges, 1), encoder.vector.unsqueeze(-1))
    assert features is not None
    if isinstance(encoder, LinearEncoder):
        features = encoder.inputs(features)
        matrix = torch.cat([encoder.linear.weight, encoder.linear.bias.unsqueeze(-1)], dim=1)
        return Projected(row, torch.cat([features, features.new_ones(edges, 1)], dim=1), matrix)
    if len(encoder.tables) == 1:
        return Listed(row, features[:, 0], encoder.tables[0].weight)
    return Edges(row, embedded(encoder, features, streams))


def embedded(encoder: AttributeEncoder, features: Tensor, streams: Streams) -> Tensor:
    """[M, D] as the encoder itself; gradients of tables are computed on a side stream."""
    if not isinstance(encoder, TypeEncoder):
        return encoder(features, features.shape[0])
    tables = zip(features.unbind(1), encoder.tables, strict=True)
    return reduce(add, (lookup(column, table.weight, streams.side_stream) for column, table in tables))
