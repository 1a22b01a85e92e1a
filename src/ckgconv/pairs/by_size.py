"""Graphs of similar size together, where a batch mixes small and large ones.

Coordinates are computed in padded matrices [G, n, n]. One graph of 1,000 nodes among 500 molecules would pad each of
them to 1,000². Graphs of 2^(c-1) < n ≤ 2^c nodes form a group: padded to the largest of the group, the matrices of all
groups have at most 4 Σ n² cells.

Legend: G graphs, N nodes, n nodes of the largest graph, P pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ckgconv.graphs import Coordinates, PackedGraphs, pointer

# Below this many cells, grouping costs more than it saves.
FEW_CELLS = 2**24
WASTE = 4


@dataclass(frozen=True)
class Group:
    """Some of the graphs, as graphs of their own."""

    graphs: PackedGraphs
    nodes: Tensor  # [·] their nodes, ascending, as numbered in all graphs
    number: Tensor  # [N] the number of each node in the group; undefined for other nodes


def padded_cells(count: int, widest: int, pairs: int) -> int:
    """An upper bound of the padded cells of G graphs of up to n nodes with P pairs."""
    return min(count * widest**2, max(WASTE * pairs, FEW_CELLS))


def groups(graphs: PackedGraphs) -> list[Group] | None:
    """The graphs by size; None where padding all of them together wastes little."""
    if not graphs.num_graphs or graphs.num_graphs * graphs.largest**2 <= FEW_CELLS:
        return None
    sizes = graphs.sizes
    if graphs.num_graphs * graphs.largest**2 <= WASTE * int(sizes.square().sum()):
        return None
    kind = sizes.clamp(min=1).double().log2().ceil()
    return [_group(graphs, kind == each) for each in kind.unique()]


def all_pairs_by_size(graphs: PackedGraphs, compute: Callable[[PackedGraphs], Coordinates]) -> Coordinates:
    """Coordinates of every pair, group by group."""
    parts = groups(graphs)
    if parts is None:
        return compute(graphs)
    found = [compute(part.graphs) for part in parts]
    receiver = torch.cat([part.nodes[each.receiver] for part, each in zip(parts, found, strict=True)])
    sender = torch.cat([part.nodes[each.sender] for part, each in zip(parts, found, strict=True)])
    # A stable sort by receiver is enough: pairs are in order within a group, and each receiver is in one group.
    order = receiver.argsort(stable=True)
    values = torch.cat([each.values for each in found])
    return Coordinates(receiver[order], sender[order], values[order], complete=True)


def at_pairs_by_size(
    graphs: PackedGraphs,
    receiver: Tensor,
    sender: Tensor,
    compute: Callable[[PackedGraphs, Tensor, Tensor], Tensor],
) -> Tensor:
    """[P, …] values of the given pairs, group by group."""
    parts = groups(graphs)
    if parts is None:
        return compute(graphs, receiver, sender)
    places, found = [], []
    for part in parts:
        inside = torch.zeros(graphs.num_nodes, dtype=torch.bool, device=receiver.device)
        inside[part.nodes] = True
        place = inside[receiver].nonzero().squeeze(-1)
        places.append(place)
        found.append(compute(part.graphs, part.number[receiver[place]], part.number[sender[place]]))
    return torch.cat(found)[torch.cat(places).argsort()]


def nodes_by_size(graphs: PackedGraphs, compute: Callable[[PackedGraphs], Tensor]) -> Tensor:
    """[N, …] values of every node, group by group."""
    parts = groups(graphs)
    if parts is None:
        return compute(graphs)
    return torch.cat([compute(part.graphs) for part in parts])[torch.cat([part.nodes for part in parts]).argsort()]


def _group(graphs: PackedGraphs, chosen: Tensor) -> Group:
    """The graphs that a mask [G] selects."""
    inside = chosen[graphs.node_graph]
    nodes = inside.nonzero().squeeze(-1)
    number = inside.long().cumsum(0) - 1
    edges = inside[graphs.receiver].nonzero().squeeze(-1)
    return Group(
        PackedGraphs(
            receiver=number[graphs.receiver[edges]],
            sender=number[graphs.sender[edges]],
            edge_weight=None if graphs.edge_weight is None else graphs.edge_weight[edges],
            node_graph=(chosen.long().cumsum(0) - 1)[graphs.node_graph[nodes]],
            node_ptr=pointer(graphs.sizes[chosen]),
        ),
        nodes,
        number,
    )
