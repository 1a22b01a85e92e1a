"""The random walk M = D⁻¹A (Section 3.2.1).

M_ij is the probability that a walk at i steps to j, one of the senders of i. The receiver's degree normalises, so rows
sum to one; rows of nodes without a sender are zero. Weighted graphs: A holds the weights.
"""

from collections.abc import Iterator
from typing import TypeVar

import torch
from torch import Tensor

from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.layout import PairReader, adjacency, sparse_adjacency
from ckgconv.pe.sparse import SparseMatrix, from_keys, identity

Matrix = TypeVar("Matrix", Tensor, SparseMatrix)


def transition(graphs: PackedGraphs, dtype: torch.dtype) -> Tensor:
    """[G, n, n] M, zero-padded."""
    matrix = adjacency(graphs, dtype)
    return matrix / nonzero(matrix.sum(-1, keepdim=True))


def sparse_transition(graphs: PackedGraphs, dtype: torch.dtype) -> SparseMatrix:
    """M as an [N, N] matrix, block diagonal over the graphs."""
    matrix = sparse_adjacency(graphs, dtype)
    degree = nonzero(graphs.degree(dtype))
    return SparseMatrix(matrix.row, matrix.column, matrix.values / degree[matrix.row], matrix.size)


def powers(matrix: Matrix, steps: int) -> Iterator[Matrix]:
    """M¹, M², …, M^steps, padded or sparse."""
    power = matrix
    for step in range(steps):
        power = power @ matrix if step else matrix
        yield power


def powers_at(pairs: PairReader, matrix: Tensor, steps: int, dtype: torch.dtype) -> Tensor:
    """[P, C] I, M … M^steps at the pairs of a reader, of a padded matrix."""
    on_diagonal = (pairs.receiver == pairs.sender).to(dtype)
    return torch.stack([on_diagonal, *(pairs.read(power).to(dtype) for power in powers(matrix, steps))], dim=-1)


def sparse_powers(matrix: SparseMatrix, steps: int) -> Coordinates:
    """I, M … M^steps at the pairs where one of them has an entry."""
    start = identity(matrix.size, matrix.values.dtype, matrix.values.device)
    channels = [start, *powers(matrix, steps)]
    stored, place = torch.unique(torch.cat([channel.keys() for channel in channels]), return_inverse=True)
    number = torch.cat([torch.full_like(channel.row, index) for index, channel in enumerate(channels)])
    table = start.values.new_zeros(stored.shape[0], steps + 1)
    table = table.index_put((place, number), torch.cat([channel.values for channel in channels]))
    return Coordinates(*from_keys(stored, matrix.size), table, complete=False)


def nonzero(degree: Tensor) -> Tensor:
    """Degrees with 0 replaced by 1: a zero row divided by one stays zero, and so does its gradient."""
    return torch.where(degree > 0, degree, torch.ones_like(degree))


def working_dtype(graphs: PackedGraphs) -> torch.dtype:
    """The dtype of the edge weights, or torch's default where edges have none."""
    return torch.get_default_dtype() if graphs.edge_weight is None else graphs.edge_weight.dtype
