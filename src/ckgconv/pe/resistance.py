"""Effective resistances of given pairs, from sparse factors of the Laplacian.

    RD_ij = (e_i - e_j)ᵀ Γ (e_i - e_j),   Γ = L⁻¹ with one node of every component grounded

Γ of a grounded component differs from the pseudo-inverse, resistances do not. Columns of Γ are solved for a few at a
time, and only the given pairs are read. Components do not touch, so that one column of a block serves a node of each
component: time grows with N times the nodes of the largest component, memory with N, the pairs and the factors.

The gradient in a conductance c_ab is that of -(e_a - e_b)ᵀ Γ Q Γ (e_a - e_b), Q = Σ_ij g_ij (e_i - e_j)(e_i - e_j)ᵀ,
where g are the gradients of the resistances.

Legend: N nodes, E edges, P pairs.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.linalg import splu
from torch import Tensor
from torch.autograd.function import once_differentiable

from ckgconv.checks import require
from ckgconv.graphs import PackedGraphs
from ckgconv.pe.sparse import SparseMatrix, sparse_matrix
from ckgconv.pe.walk import working_dtype

Nodes = NDArray[np.int64]
Values = NDArray[np.float64]

# Above this ratio of edge weights, resistances keep fewer than six digits in float64.
WIDEST_RATIO = 1e9
# Entries of a block of columns: small enough for the cache of a processor, which halves the time of large blocks.
BLOCK = 2**19


def rd_at(graphs: PackedGraphs, receiver: Tensor, sender: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """[P, 1], what `rd` holds for the given pairs; computed in float64 on the CPU, differentiable in the weights."""
    a, b = graphs.receiver, graphs.sender
    weights = graphs.weights(torch.float64)
    halves = torch.cat([weights, weights]).detach() / 2
    conductance = sparse_matrix(torch.cat([a, b]), torch.cat([b, a]), halves, graphs.num_nodes)
    conductance = conductance.select(conductance.values > 0)
    check_conductances(conductance.values)
    network = Network(conductance)
    together = torch.from_numpy(network.component).to(receiver)
    # The smaller number is read first, so that a pair and its mirror have the same bits.
    low, high = torch.minimum(receiver, sender), torch.maximum(receiver, sender)
    finite = together[receiver] == together[sender]
    resistance = receiver.new_full(receiver.shape, torch.inf, dtype=torch.float64)
    measured = _Resistance.apply(weights, network, torch.stack([a, b]), torch.stack([low[finite], high[finite]]))
    resistance = resistance.index_put((finite.nonzero().squeeze(-1),), measured)
    return resistance.unsqueeze(-1).to(dtype or working_dtype(graphs))


def check_conductances(positive: Tensor) -> None:
    """Refuse weights that differ so much that resistances would be noise."""
    if positive.numel():
        ratio = float(positive.max() / positive.min())
        require(
            ratio <= WIDEST_RATIO,
            f"edge_weight spans a factor of {ratio:.1e}: resistances would lose all digits, drop the weakest edges.",
        )


class Network:
    """Γ of resistors between N nodes, as factors of the grounded Laplacian.

    Args:
        conductance: symmetric, positive; entries of the diagonal carry no current.
    """

    def __init__(self, conductance: SparseMatrix) -> None:
        size = conductance.size
        self.component = conductance.components("weak").cpu().numpy()
        row, column, values = (each.cpu().numpy() for each in (conductance.row, conductance.column, conductance.values))
        apart = row != column
        row, column, values = row[apart], column[apart], values[apart]
        degree = np.bincount(row, weights=values, minlength=size)
        # Grounding the best connected node of each component keeps Γ small.
        order = np.lexsort((-degree, self.component))
        _, first = np.unique(self.component[order], return_index=True)
        self.free = np.ones(size, dtype=bool)
        self.free[order[first]] = False
        inside = self.free[row] & self.free[column]
        node = np.arange(size)
        entries = np.concatenate([-values[inside], np.where(self.free, degree, 1.0)])
        place = np.concatenate([row[inside], node]), np.concatenate([column[inside], node])
        laplacian = csc_array(coo_array((entries, place), shape=(size, size)))
        # The matrix is positive definite, so a symmetric order needs no pivots.
        self.factors = splu(laplacian, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def measure(self, i: Nodes, j: Nodes, between: csr_array | None = None) -> Values:
        """[P] (e_i - e_j)ᵀ Γ (e_i - e_j), or Γ Q Γ in place of Γ where Q is given; i and j of one component."""
        own, crossed = np.zeros(self.free.shape[0]), np.zeros(i.shape[0])
        place = self._places(np.unique(np.concatenate([i, j])))
        by_place = np.argsort(place[i], kind="stable")
        sorted_places = place[i[by_place]]
        for first, columns in self._columns(place, between):
            last = first + columns.shape[1]
            node = np.flatnonzero((place >= first) & (place < last))
            own[node] = columns[node, place[node] - first]
            pair = by_place[slice(*np.searchsorted(sorted_places, (first, last)))]
            crossed[pair] = columns[j[pair], place[i[pair]] - first]
        return np.where(i == j, 0.0, own[i] + own[j] - 2 * crossed)

    def _places(self, nodes: Nodes) -> Nodes:
        """[N] the column that serves a node, counted within its component; -1 for nodes that need none."""
        order = nodes[np.argsort(self.component[nodes], kind="stable")]
        _, first, size = np.unique(self.component[order], return_index=True, return_counts=True)
        place = np.full(self.free.shape[0], -1)
        place[order] = np.arange(order.shape[0]) - np.repeat(first, size)
        return place

    def _columns(self, place: Nodes, between: csr_array | None) -> Iterator[tuple[int, Values]]:
        """First place and columns of Γ, or of Γ Q Γ, of one block after another."""
        nodes, total = self.free.shape[0], int(place.max(initial=-1)) + 1
        width = max(BLOCK // nodes, 4)
        for first in range(0, total, width):
            unit = np.zeros((nodes, min(width, total - first)), order="F")
            node = np.flatnonzero((place >= first) & (place < first + width) & self.free)
            unit[node, place[node] - first] = 1.0
            columns = self.factors.solve(unit)
            if between is not None:
                currents = np.asfortranarray(between @ columns)
                currents[~self.free] = 0.0
                columns = self.factors.solve(currents)
            yield first, columns


class _Resistance(torch.autograd.Function):
    """weights [E], `Network`, edges [2, E], pairs [2, P] of one component each → resistances [P]."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, network: Network, edges: Tensor, pairs: Tensor) -> Tensor:
        ctx.network = network
        ctx.save_for_backward(edges, pairs)
        i, j = pairs.cpu().numpy()
        return torch.from_numpy(network.measure(i, j)).to(weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        network, (edges, pairs) = ctx.network, ctx.saved_tensors
        i, j = pairs.cpu().numpy()
        a, b = edges.cpu().numpy()
        gradient, nodes = gradients[0].cpu().numpy(), network.free.shape[0]
        entries = np.concatenate([gradient, gradient, -gradient, -gradient])
        place = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        between = csr_array(coo_array((entries, place), shape=(nodes, nodes)))
        joined = network.component[a] == network.component[b]
        felt = np.zeros(a.shape[0])
        # Half, since A is (A + Aᵀ)/2.
        felt[joined] = -network.measure(a[joined], b[joined], between) / 2
        return torch.from_numpy(felt).to(gradients[0]), None, None, None
