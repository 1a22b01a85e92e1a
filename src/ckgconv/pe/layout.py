"""Packed graphs ↔ padded matrices and sparse matrices.

Legend: G graphs, N nodes, n nodes of the largest graph, P = Σ n_g² pairs.
"""

import torch
from torch import Tensor

from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.sparse import SparseMatrix, sparse_matrix

# Graphs of up to this many nodes use padded matrices for walks, larger ones sparse ones; the results are equal. With
# sparse ones a training step with two hops on 1,000 nodes needs 33 ms, with padded ones 126 (`benchmarks/scale.py`, two
# CPU cores).
LARGEST_PADDED = 512


def adjacency(graphs: PackedGraphs, dtype: torch.dtype) -> Tensor:
    """[G, n, n] A_ij, the summed weight of the edges (i, j), zero-padded; differentiable in the weights."""
    widest = graphs.largest
    cell = cells(graphs, graphs.receiver, graphs.sender)
    flat = torch.zeros(graphs.num_graphs * widest**2, dtype=dtype, device=cell.device)
    return flat.index_add(0, cell, graphs.weights(dtype)).view(graphs.num_graphs, widest, widest)


def sparse_adjacency(graphs: PackedGraphs, dtype: torch.dtype) -> SparseMatrix:
    """A as an [N, N] matrix, block diagonal over the graphs; edges of weight zero are left out."""
    weights = graphs.weights(dtype)
    walkable = weights > 0
    i, j = graphs.receiver[walkable], graphs.sender[walkable]
    return sparse_matrix(i, j, weights[walkable], graphs.num_nodes)


def local(graphs: PackedGraphs, nodes: Tensor) -> Tensor:
    """Numbers of `nodes` within their own graphs."""
    return nodes - _first_nodes(graphs).index_select(0, nodes)


def cells(graphs: PackedGraphs, receiver: Tensor, sender: Tensor) -> Tensor:
    """Places of pairs of nodes in padded matrices [G, n, n], flattened."""
    # index_select: indexing by brackets takes seven times as long on a CPU.
    first, widest = _first_nodes(graphs), graphs.largest
    row = graphs.node_graph * widest - first + torch.arange(graphs.num_nodes, device=first.device)
    row_start = (row * widest - first).index_select(0, receiver)
    return row_start + sender


def _first_nodes(graphs: PackedGraphs) -> Tensor:
    """[N] the first node of the graph of each node."""
    return graphs.node_ptr.index_select(0, graphs.node_graph)


def all_pairs(graphs: PackedGraphs) -> tuple[Tensor, Tensor]:
    """Receivers and senders [P] of every pair of every graph, row by row."""
    reach = graphs.sizes.index_select(0, graphs.node_graph)
    nodes = torch.arange(graphs.num_nodes, device=reach.device)
    receiver = nodes.repeat_interleave(reach)
    offset = _first_nodes(graphs) - (reach.cumsum(0) - reach)
    return receiver, torch.arange(receiver.shape[0], device=reach.device) + offset.index_select(0, receiver)


class PairReader:
    """Reads padded [G, n, n] matrices at every real pair, in the order of `all_pairs`, or at given pairs."""

    def __init__(self, graphs: PackedGraphs, pairs: tuple[Tensor, Tensor] | None = None) -> None:
        self.receiver, self.sender = all_pairs(graphs) if pairs is None else pairs
        self.cell = cells(graphs, self.receiver, self.sender)

    def read(self, padded: Tensor) -> Tensor:
        """[G, n, n] → [P]."""
        return padded.reshape(-1).index_select(0, self.cell)

    def coordinates(self, values: Tensor) -> Coordinates:
        """Values of every pair."""
        return Coordinates(self.receiver, self.sender, values, complete=True)


def read_nodes(graphs: PackedGraphs, padded: Tensor) -> Tensor:
    """[G, n, …] → [N, …]: the rows of real nodes."""
    nodes = torch.arange(graphs.num_nodes, device=padded.device)
    return padded[graphs.node_graph, local(graphs, nodes)]
