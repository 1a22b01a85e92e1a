"""The heat kernel at given pairs, by Chebyshev polynomials of the normalised adjacency.

    e^(-tL) = e^(-t) [ I₀(t) T₀(S) + 2 Σ_(k ≥ 1) I_k(t) T_k(S) ],   S = I - L,   I_k modified Bessel functions

The eigenvalues of S lie in [-1, 1], where every |T_k| ≤ 1, so that what is left out is at most the sum of the left-out
coefficients: terms end where that is below the rounding of float64. One recurrence serves all times.

T_k(S) e_i is computed for a few columns at a time, and read at the given pairs. A polynomial of degree d reaches d
hops, so that nodes far apart share a column: those whose levels of a breadth-first search differ by more than d plus
the levels that a pair spans. Long graphs need few columns, graphs of few levels one for each node.

Legend: N nodes, P pairs, K times, S entries of a sparse matrix.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.special import ive
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ckgconv.graphs import PackedGraphs
from ckgconv.pe.layout import sparse_adjacency
from ckgconv.pe.sparse import SparseMatrix, sparse_matrix
from ckgconv.pe.walk import nonzero

# The series ends where all coefficients that follow add up to less.
NEGLIGIBLE = 1e-17
# Most entries in a block of columns.
BLOCK = 2**20


def heat_at(graphs: PackedGraphs, times: Sequence[float], receiver: Tensor, sender: Tensor) -> Tensor:
    """[P, K] e^(-tL)_ij of the given pairs, in float64; differentiable in the weights, at twice the time."""
    matrix = normalised_adjacency(graphs)
    component = matrix.components("weak")
    # No heat crosses components. The smaller number is read first, so that a pair and its mirror have the same bits.
    joined = (component[receiver] == component[sender]).nonzero().squeeze(-1)
    low, high = torch.minimum(receiver, sender)[joined], torch.maximum(receiver, sender)[joined]
    terms = coefficients(times).to(receiver.device)
    place = columns(matrix, component, (low, high), terms.shape[0] - 1)
    order = place[low].argsort(stable=True)
    width = max(BLOCK // graphs.num_nodes, 4)
    first = torch.arange(0, int(place.max()) + 1 + width, width, device=order.device)
    bounds = torch.searchsorted(place[low[order]], first).tolist()
    kernel = torch.zeros(receiver.shape[0], len(times), dtype=torch.float64, device=receiver.device)
    read = []
    for number, (start, end) in enumerate(pairwise(bounds)):
        part, shift = order[start:end], number * width
        nodes = ((place >= shift) & (place < shift + width)).nonzero().squeeze(-1)
        unit, cell = (nodes, place[nodes] - shift), (high[part], place[low[part]] - shift)
        read.append(checkpoint(_series, matrix, matrix.values, unit, cell, terms, use_reentrant=False))
    return kernel.index_put((joined[order],), torch.cat(read)) if read else kernel


def normalised_adjacency(graphs: PackedGraphs) -> SparseMatrix:
    """S = D^(-½) (A + Aᵀ)/2 D^(-½), with 1 on the diagonal of isolated nodes, which keep their heat."""
    edges = sparse_adjacency(graphs, torch.float64)
    row, column = torch.cat([edges.row, edges.column]), torch.cat([edges.column, edges.row])
    matrix = sparse_matrix(row, column, torch.cat([edges.values, edges.values]) / 2, edges.size)
    degree = matrix.values.new_zeros(edges.size).index_add(0, matrix.row, matrix.values)
    scale = nonzero(degree).rsqrt()
    alone = (degree == 0).nonzero().squeeze(-1)
    values = scale[matrix.row] * matrix.values * scale[matrix.column]
    values = torch.cat([values, values.new_ones(alone.shape[0])])
    return sparse_matrix(torch.cat([matrix.row, alone]), torch.cat([matrix.column, alone]), values, edges.size)


def coefficients(times: Sequence[float]) -> Tensor:
    """[d + 1, K] of T₀ … T_d at each time."""
    degree, longest = 1, max(times)
    while 2 * ive(np.arange(degree, 2 * degree), longest).sum() > NEGLIGIBLE:
        degree *= 2
    terms = 2 * ive(np.arange(2 * degree)[:, None], np.asarray(times))
    terms[0] /= 2
    left_out = terms[::-1].cumsum(0)[::-1].max(1)
    return torch.from_numpy(terms[: max(int((left_out > NEGLIGIBLE).sum()), 1)])


def columns(matrix: SparseMatrix, component: Tensor, pairs: tuple[Tensor, Tensor], degree: int) -> Tensor:
    """[N] the column in which T_k(S) e_i is computed for each first node i of `pairs`, up to T_degree; else -1.

    Nodes share a column only if none adds anything at the second nodes of another's pairs.
    """
    source, target, part = (each.cpu().numpy() for each in (*pairs, component))
    level = levels(matrix, part)
    spanned = int(np.abs(level[source] - level[target]).max(initial=0))
    period = degree + spanned + 1
    nodes = np.unique(source)
    # Nodes of one level of one component need columns of their own: their rank is counted within it.
    order = nodes[np.lexsort((level[nodes], part[nodes]))]
    group = part[order] * (int(level.max(initial=0)) + 1) + level[order]
    _, first, size = np.unique(group, return_index=True, return_counts=True)
    rank = np.arange(order.shape[0]) - np.repeat(first, size)
    residue = level[order] % period
    widest = np.zeros(period, dtype=np.int64)
    np.maximum.at(widest, residue, rank + 1)
    place = np.full(matrix.size, -1)
    place[order] = (widest.cumsum() - widest)[residue] + rank
    return torch.from_numpy(place).to(matrix.row)


def levels(matrix: SparseMatrix, component: np.ndarray) -> np.ndarray:
    """[N] hops from one node of each component, one as far from the others as a first search finds."""
    row, column = matrix.row.cpu().numpy(), matrix.column.cpu().numpy()
    steps = coo_array((np.ones(row.shape[0]), (row, column)), shape=(matrix.size, matrix.size)).tocsr()
    level = np.zeros(matrix.size)
    for _ in range(2):
        order = np.lexsort((-level, component))
        start = order[np.unique(component[order], return_index=True)[1]]
        level = dijkstra(steps, directed=False, indices=start, unweighted=True, min_only=True)
    return level.astype(np.int64)


def _series(
    matrix: SparseMatrix, values: Tensor, unit: tuple[Tensor, Tensor], cell: tuple[Tensor, Tensor], terms: Tensor
) -> Tensor:
    """[P, K] Σ_k c_k T_k(S) at the cells (node, column) of a block that starts with ones at the places `unit`."""
    shape = (matrix.size, int(unit[1].max()) + 1)
    before = values.new_zeros(shape).index_put(unit, values.new_ones(unit[0].shape[0]))
    place = torch.stack([matrix.row, matrix.column])
    step = torch.sparse_coo_tensor(place, values, (shape[0],) * 2, is_coalesced=True, check_invariants=False)
    total = before[cell].unsqueeze(-1) * terms[0]
    power = torch.sparse.mm(step, before)
    for coefficient in terms[1:]:
        total = total + power[cell].unsqueeze(-1) * coefficient
        before, power = power, 2 * torch.sparse.mm(step, power) - before
    return total
