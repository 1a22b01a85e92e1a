"""Square sparse matrices over the nodes of all graphs: just enough algebra for random walks.

    (AB)_ij = Σ_k A_ik B_kj,   only for i and j that some k links

Plain gathers and sums: any device, differentiable in the values. Legend: N nodes, S entries.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from ckgconv.graphs import entries_of, pointer


@dataclass(frozen=True)
class SparseMatrix:
    """[N, N] with distinct entries sorted by row, then column."""

    row: Tensor  # [S] int64
    column: Tensor  # [S] int64
    values: Tensor  # [S]
    size: int

    @cached_property
    def rowptr(self) -> Tensor:
        """[N + 1] int64, row i owns entries rowptr[i] … rowptr[i + 1] - 1."""
        return pointer(torch.bincount(self.row, minlength=self.size))

    def __matmul__(self, other: "SparseMatrix") -> "SparseMatrix":
        """The product, as `sparse_matrix` stores it."""
        # Each entry (i, k) meets the whole row k of the other matrix.
        left, within = entries_of(other.rowptr.diff()[self.column])
        right = other.rowptr[self.column[left]] + within
        return sparse_matrix(self.row[left], other.column[right], self.values[left] * other.values[right], self.size)

    def pattern(self) -> "SparseMatrix":
        """Ones in place of the values."""
        return SparseMatrix(self.row, self.column, torch.ones_like(self.values), self.size)

    def keys(self) -> Tensor:
        """[S] a number for each place, ascending."""
        return self.row * self.size + self.column

    def expansion(self, other: "SparseMatrix") -> int:
        """Entries that a product with `other` forms before it adds them up."""
        return int(torch.bincount(other.row, minlength=self.size)[self.column].sum())

    def select(self, entries: Tensor) -> "SparseMatrix":
        """The entries where a mask [S] holds."""
        return SparseMatrix(self.row[entries], self.column[entries], self.values[entries], self.size)

    def components(self, connection: Literal["weak", "strong"]) -> Tensor:
        """[N] int64: the component of each node, by edges in either direction, or by walks there and back."""
        row, column = self.row.cpu().numpy(), self.column.cpu().numpy()
        matrix = coo_array(((row == row), (row, column)), shape=(self.size, self.size))
        _, labels = connected_components(matrix, connection=connection)
        return torch.from_numpy(labels).to(self.row)


def sparse_matrix(row: Tensor, column: Tensor, values: Tensor, size: int) -> SparseMatrix:
    """Entries in any order, repeated ones summed."""
    key, place = torch.unique(row * size + column, return_inverse=True)
    summed = values.new_zeros(key.shape[0]).index_add(0, place, values)
    return SparseMatrix(*from_keys(key, size), summed, size)


def from_keys(keys: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows and columns from numbers as those of `SparseMatrix.keys`."""
    return keys // size, keys % size


def find(wanted: Tensor, ascending: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each number in an ascending list, and whether the list has it."""
    place = torch.searchsorted(ascending, wanted).clamp(max=max(ascending.shape[0] - 1, 0))
    found = ascending[place] == wanted if ascending.shape[0] else torch.zeros_like(wanted, dtype=torch.bool)
    return place, found


def identity(size: int, dtype: torch.dtype, device: torch.device) -> SparseMatrix:
    """I."""
    nodes = torch.arange(size, device=device)
    return SparseMatrix(nodes, nodes, torch.ones(size, dtype=dtype, device=device), size)
