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
    i, j = graphs.receiver, graphs.sender
    cell = (graphs.node_graph[i] * widest + local(graphs, i)) * widest + local(graphs, j)
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
    return nodes - graphs.node_ptr[graphs.node_graph[nodes]]


def all_pairs(graphs: PackedGraphs) -> tuple[Tensor, Tensor]:
    """Receivers and senders [P] of every pair of every graph, row by row."""
    reach = graphs.sizes[graphs.node_graph]
    nodes = torch.arange(graphs.num_nodes, device=reach.device)
    receiver = nodes.repeat_interleave(reach)
    row_start = (reach.cumsum(0) - reach)[receiver]
    within = torch.arange(receiver.shape[0], device=reach.device) - row_start
    return receiver, graphs.node_ptr[graphs.node_graph[receiver]] + within


class PairReader:
    """Reads padded [G, n, n] matrices at every real pair, in the order of `all_pairs`."""

    def __init__(self, graphs: PackedGraphs) -> None:
        self.receiver, self.sender = all_pairs(graphs)
        widest = graphs.largest
        row = graphs.node_graph[self.receiver] * widest + local(graphs, self.receiver)
        self.cell = row * widest + local(graphs, self.sender)

    def read(self, padded: Tensor) -> Tensor:
        """[G, n, n] → [P]."""
        return padded.reshape(-1).index_select(0, self.cell)

    def coordinates(self, values: Tensor) -> Coordinates:
        return Coordinates(self.receiver, self.sender, values, complete=True)


def read_nodes(graphs: PackedGraphs, padded: Tensor) -> Tensor:
    """[G, n, …] → [N, …]: the rows of real nodes."""
    nodes = torch.arange(graphs.num_nodes, device=padded.device)
    return padded[graphs.node_graph, local(graphs, nodes)]
