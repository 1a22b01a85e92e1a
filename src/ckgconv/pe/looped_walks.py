"""Walks that may stay: powers of GCN's propagation matrix (Kipf and Welling, ICLR 2017).

    P_ij = [I, S, …, S^K]_ij,   S = (D + I)^(-½) (A + I) (D̄ + I)^(-½)

D holds the degrees of nodes as receivers, D̄ as senders, the row and column sums of A; both are the same where edges go
both ways. No singular value of S is above one, so that no power grows. S spreads what it averages by degrees: nodes of
high degree receive more and send less than in M = D⁻¹A.

Legend: G graphs, N nodes, n nodes of the largest graph, P pairs, C = K + 1 channels. Defined for every graph:

- directed: as RRWP, a receiver reads its senders;
- weighted: A holds the weights; the loop of each node weighs one, so that their scale matters;
- isolated nodes and single nodes: P_ii = 1 in every channel;
- disconnected: zero between components;
- self loops: they add to the loop of weight one;
- duplicate edges: their weights add up, an edge of weight zero is no edge.
"""

import torch
from torch import Tensor

from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.layout import PairReader, adjacency, sparse_adjacency
from ckgconv.pe.sparse import SparseMatrix, identity, sparse_matrix
from ckgconv.pe.walk import powers_at, sparse_powers, working_dtype


def looped_walks(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """P for every pair of every graph, Σ n² rows.

    Args:
        graphs: packed graphs on any device; differentiable in their edge weights.
        steps: K.
        dtype: of the result; by default that of the edge weights, or torch's default.
    """
    pairs = PairReader(graphs)
    return pairs.coordinates(powers_at(pairs, looped(graphs, torch.float64), steps, dtype or working_dtype(graphs)))


def sparse_looped_walks(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """The same values, but only the pairs that a walk of at most K steps reaches, the diagonal included."""
    return sparse_powers(sparse_looped(graphs, dtype or working_dtype(graphs)), steps)


def looped(graphs: PackedGraphs, dtype: torch.dtype) -> Tensor:
    """[G, n, n] S; padding has loops too, but no pair reads them."""
    matrix = adjacency(graphs, dtype)
    matrix = matrix + torch.eye(matrix.shape[-1], dtype=dtype, device=matrix.device)
    return matrix * matrix.sum(-1, keepdim=True).rsqrt() * matrix.sum(-2, keepdim=True).rsqrt()


def sparse_looped(graphs: PackedGraphs, dtype: torch.dtype) -> SparseMatrix:
    """S as an [N, N] matrix, block diagonal over the graphs."""
    edges = sparse_adjacency(graphs, dtype)
    loops = identity(edges.size, dtype, edges.row.device)
    row, column = torch.cat([edges.row, loops.row]), torch.cat([edges.column, loops.column])
    matrix = sparse_matrix(row, column, torch.cat([edges.values, loops.values]), edges.size)
    none = matrix.values.new_zeros(matrix.size)
    received, sent = (none.index_add(0, node, matrix.values) for node in (matrix.row, matrix.column))
    values = matrix.values * received.rsqrt()[matrix.row] * sent.rsqrt()[matrix.column]
    return SparseMatrix(matrix.row, matrix.column, values, matrix.size)


LOOPED_WALKS = PseudoCoordinate(
    values=looped_walks,
    channels=lambda steps: steps + 1,
    reading="normalised",
    sparse=sparse_looped_walks,
    rescaled=True,
    diagonal_skips=1,  # I is one on every diagonal
)
