"""The adjacency of a graph in any form of PyG → edges with sources above targets, and what is stored with each.

    edge_index [2, E]                          as it is; of an `EdgeIndex` the tensor
    adj_t [N, N]: rows targets, columns sources   a `SparseTensor`, or torch's COO, CSR or CSC; one edge per entry

Legend: N nodes, E edges.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from ckgconv.checks import check_shape, require
from ckgconv.graphs import SOURCE_TO_TARGET, Flow

Adjacency = Any  # a tensor [2, E], an EdgeIndex, a SparseTensor of torch_sparse or a sparse tensor [N, N] of torch


class EdgeList(NamedTuple):
    """Edges in the order in which the adjacency stores them."""

    edge_index: Tensor  # [2, E] sources above targets
    values: Tensor | None = None  # [E, …] what the entries of a sparse matrix hold
    shape: tuple[int, int] | None = None  # targets and sources of a sparse matrix


def edge_list(adjacency: Adjacency, flow: Flow) -> EdgeList:
    """The edges of an adjacency in any form."""
    if isinstance(adjacency, EdgeIndex):
        return EdgeList(adjacency.as_tensor())
    entries = _entries(adjacency)
    if entries is None:
        check_shape("edge_index", adjacency, (2, None), "give edges as two rows, sources above targets.")
        return EdgeList(adjacency)
    require(
        flow == SOURCE_TO_TARGET,
        "The adjacency is a sparse matrix, whose rows receive, but the layer's flow is 'target_to_source': give the "
        "transposed matrix to a layer with flow 'source_to_target', or edge_index.",
    )
    target, source, values = entries
    rows, columns = adjacency.sparse_sizes() if hasattr(adjacency, "sparse_sizes") else adjacency.shape[:2]
    return EdgeList(torch.stack([source, target]), values, (int(rows), int(columns)))


def _entries(adjacency: Adjacency) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Rows, columns and values of a sparse matrix; None for anything else."""
    if not isinstance(adjacency, Tensor):
        # Told by its methods: importing its class would need torch_sparse.
        coordinates = getattr(adjacency, "coo", None)
        return coordinates() if callable(coordinates) and hasattr(adjacency, "sparse_sizes") else None
    if adjacency.layout == torch.strided:
        return None
    if adjacency.layout == torch.sparse_coo:
        # Not coalesced: repeated entries are parallel edges.
        row, column = adjacency._indices()
        return row, column, adjacency._values()
    if adjacency.layout == torch.sparse_csr:
        return _expanded(adjacency.crow_indices()), adjacency.col_indices(), adjacency.values()
    require(
        adjacency.layout == torch.sparse_csc,
        f"The adjacency has layout {adjacency.layout}: convert with adjacency.to_sparse_csr().",
    )
    return adjacency.row_indices(), _expanded(adjacency.ccol_indices()), adjacency.values()


def _expanded(pointers: Tensor) -> Tensor:
    """The row of each entry, given where each row begins."""
    return torch.arange(pointers.shape[0] - 1, device=pointers.device).repeat_interleave(pointers.diff())
