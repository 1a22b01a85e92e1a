"""Random-walk structural encoding: return probabilities.

    RWSE(i) = [M, M², …, M^K]_ii           pair-RWSE(i, j) = RWSE(i) ‖ RWSE(j)

Legend: N nodes, P pairs, K steps. The cases of `rrwp` hold: an isolated node returns with probability zero, a self
loop returns at once, on a directed graph walks step from receiver to sender, parallel edges add their weights.
"""

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.layout import LARGEST_PADDED, all_pairs, read_nodes
from ckgconv.pe.sparse import SparseMatrix, find, identity
from ckgconv.pe.walk import powers, sparse_transition, transition, working_dtype


def rwse(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """[N, K] diagonals of M¹ … M^K; differentiable in the edge weights."""
    require(steps >= 0, f"steps is {steps}: give 0 or more.")
    matrix = transition(graphs, dtype or working_dtype(graphs))
    diagonals = [power.diagonal(dim1=-2, dim2=-1) for power in powers(matrix, steps)]
    padded = torch.stack(diagonals, dim=-1) if steps else matrix.new_zeros(*matrix.shape[:2], 0)
    return read_nodes(graphs, padded)


def sparse_rwse(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """[N, K] the same, at the cost of the pairs that walks of ⌈K/2⌉ steps reach instead of n².

    A walk that returns after k steps is one of ⌈k/2⌉ steps and one back: no higher power is formed.
    """
    matrix = sparse_transition(graphs, dtype or working_dtype(graphs))
    columns: list[Tensor] = []
    back = identity(graphs.num_nodes, matrix.values.dtype, matrix.values.device)
    for power in powers(matrix, (steps + 1) // 2):
        columns += [_returns(power, back), _returns(power, power)]
        back = power
    return torch.stack(columns[:steps], dim=-1) if steps else matrix.values.new_zeros(graphs.num_nodes, 0)


def return_probabilities(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """[N, K] by whichever of the two forms is faster at the size of the graphs; they differ by rounding alone."""
    return (rwse if graphs.largest <= LARGEST_PADDED else sparse_rwse)(graphs, steps, dtype)


def pair_rwse(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """RWSE(i) ‖ RWSE(j) for every pair, [P, 2K]."""
    receiver, sender = all_pairs(graphs)
    encoding = rwse(graphs, steps, dtype)
    return Coordinates(receiver, sender, torch.cat([encoding[receiver], encoding[sender]], dim=-1), complete=True)


def pair_rwse_at(
    graphs: PackedGraphs, steps: int, receiver: Tensor, sender: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """The same for the given pairs, [P, 2K]."""
    encoding = sparse_rwse(graphs, steps, dtype)
    return torch.cat([encoding[receiver], encoding[sender]], dim=-1)


def _returns(there: SparseMatrix, back: SparseMatrix) -> Tensor:
    """[N] diagonal of a product, without the product."""
    place, found = find(there.column * there.size + there.row, back.keys())
    there = there.select(found)
    returned = there.values * back.values[place[found]]
    return returned.new_zeros(there.size).index_add(0, there.row, returned)


PAIR_RWSE = PseudoCoordinate(values=pair_rwse, channels=lambda steps: 2 * steps, reading="raw", at_pairs=pair_rwse_at)
