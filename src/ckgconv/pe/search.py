"""Hop distances of given pairs: a breadth-first search from their receivers, level by level.

    reached_0 = {i},   reached_h = reached_(h-1) ∪ {k : a walk steps from reached_(h-1) to k}
    SPD_ij = the first h with j ∈ reached_h

A search ends once its pairs are found, so pairs within k hops cost k levels. Pairs of different components are never
searched for; beyond the largest distance it is enough that a walk leads from i to j at all.

Legend: N nodes, P pairs.
"""

from itertools import count

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import PackedGraphs
from ckgconv.pe.layout import sparse_adjacency
from ckgconv.pe.sparse import SparseMatrix, find

# The distance of a pair without a path.
UNREACHABLE = -1
# Most places in one search, of about 60 bytes each; a larger search is split into two of half the receivers.
LARGEST_SEARCH = 2**23


def spd_at(graphs: PackedGraphs, max_distance: int, receiver: Tensor, sender: Tensor) -> Tensor:
    """[P] int64, what `spd` holds for the given pairs, which are distinct and sorted by receiver, then sender."""
    require(max_distance >= 1, f"max_distance is {max_distance}: give at least 1 hop.")
    step = sparse_adjacency(graphs, torch.float32).pattern()
    weak, strong = step.components("weak"), step.components("strong")
    distance = torch.where(receiver == sender, 0, UNREACHABLE)
    searched = ((receiver != sender) & (weak[receiver] == weak[sender])).nonzero().squeeze(-1)
    receiver, sender = receiver[searched], sender[searched]
    found = _search(step, max_distance, receiver, sender, strong[receiver] == strong[sender])
    return distance.index_put((searched,), found)


def _search(step: SparseMatrix, max_distance: int, receiver: Tensor, sender: Tensor, connected: Tensor) -> Tensor:
    """[P] distances; `connected` [P]: pairs known to have a path."""
    distance = torch.full_like(receiver, UNREACHABLE)
    wanted = receiver * step.size + sender
    missing = torch.arange(receiver.shape[0], device=receiver.device)
    source = torch.unique(receiver)
    frontier = SparseMatrix(source, source, step.values.new_ones(source.shape[0]), step.size)
    reached = frontier.keys()
    for hops in count(1):
        if reached.shape[0] + frontier.expansion(step) > LARGEST_SEARCH and source.shape[0] > 1:
            return _divided(step, max_distance, (receiver, sender, connected), distance, missing)
        frontier = (frontier @ step).pattern()
        frontier = frontier.select(~find(frontier.keys(), reached)[1])
        if not missing.shape[0] or not frontier.row.shape[0]:
            return distance
        reached = torch.cat([reached, frontier.keys()]).sort().values
        _, found = find(wanted[missing], frontier.keys())
        if hops >= max_distance:
            found |= connected[missing]
        distance[missing[found]] = min(hops, max_distance)
        missing = missing[~found]
        # A search ends once it has found all its pairs.
        source = torch.unique(receiver[missing])
        frontier = frontier.select(torch.isin(frontier.row, source))
        reached = reached[torch.isin(reached // step.size, source)]
    raise AssertionError("a search ends with its graph")


def _divided(
    step: SparseMatrix, max_distance: int, pairs: tuple[Tensor, ...], distance: Tensor, missing: Tensor
) -> Tensor:
    """`distance` with the missing pairs found by two searches of half the receivers each."""
    receiver = pairs[0][missing]
    middle = torch.unique(receiver).median()
    for half in (missing[receiver <= middle], missing[receiver > middle]):
        distance[half] = _search(step, max_distance, *(each[half] for each in pairs))
    return distance
