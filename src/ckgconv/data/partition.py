"""A partition of the nodes of a large graph into parts of about equal size that few edges cross.

1. grow      from one random node each, parts take in adjacent nodes, level by level, until no node is left or all
             parts are full; nodes that no part reached fill the smallest parts;
2. refine    nodes move to the part that holds most of their neighbours, where it has room, half of the nodes at a time.

Each round is a few operations on all edges, on the device of the edges, and the result depends on the seed alone. METIS
cuts fewer edges; where PyG finds it, it is used instead.

Legend: N nodes, E edges, Q parts.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric import typing as pyg
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData
from torch_geometric.utils import to_undirected

from ckgconv.checks import require

# A part may hold this multiple of N / Q nodes, and after it has grown it keeps at least half of N / Q.
ROOM = 1.05
ROUNDS = 10


def partition(edge_index: Tensor, nodes: int, parts: int, seed: int = 0) -> Tensor:
    """[N] int64 the part of each node, 0 … Q - 1, from edges [2, E]; the first end joins the second."""
    require(1 <= parts <= nodes, f"training.sampling.parts is {parts} for {nodes} nodes: give 1 to {nodes}.")
    if pyg.WITH_METIS:
        return _metis(edge_index, nodes, parts)
    generator = torch.Generator().manual_seed(seed)
    growth = Growth(edge_index, nodes, parts, generator)
    growth.grow()
    growth.refine()
    return growth.part


class Wishes(NamedTuple):
    """Nodes, the part that each would join, and how much the part gains of edges inside."""

    node: Tensor
    part: Tensor
    gain: Tensor


class Growth:
    """A partition in the making; -1 for nodes without a part."""

    def __init__(self, edge_index: Tensor, nodes: int, parts: int, generator: torch.Generator) -> None:
        self.near, self.far = edge_index[0], edge_index[1]
        self.parts = parts
        self.generator = generator
        self.capacity = int(-(-nodes * ROOM // parts))
        self.least = max(1, nodes // (2 * parts))
        self.part = torch.full((nodes,), -1, device=edge_index.device)
        first = torch.randperm(nodes, generator=generator)[:parts].to(edge_index.device)
        self.part[first] = torch.arange(parts, device=edge_index.device)

    def grow(self) -> None:
        """Give every node a part."""
        while self._join(self._wishes(self.part < 0)):
            pass
        rest = (self.part < 0).nonzero().squeeze(-1)
        self.part[rest] = self._places()[: rest.shape[0]]

    def refine(self) -> None:
        """Move nodes to where most of their neighbours are."""
        for _ in range(ROUNDS):
            chosen = torch.rand(self.part.shape, generator=self.generator).to(self.part.device) < 0.5
            inside = torch.zeros_like(self.part).index_add_(0, self.near, (self._ends() == 0).long())
            wishes = self._wishes(chosen)
            gain = wishes.gain - inside[wishes.node]
            better = gain > 0
            if not self._join(Wishes(wishes.node[better], wishes.part[better], gain[better])):
                return

    def _ends(self) -> Tensor:
        """[E] 0 where both ends of an edge have the same part."""
        return self.part[self.near] - self.part[self.far]

    def _wishes(self, asked: Tensor) -> Wishes:
        """For each node of the mask `asked` [N] that has a neighbour with a part: that of most neighbours."""
        edges = asked[self.near] & (self.part[self.far] >= 0)
        key = self.near[edges] * self.parts + self.part[self.far[edges]]
        key, count = torch.unique(key, return_counts=True)
        node, part = key // self.parts, key % self.parts
        # The last entry of each node in this order has the highest count.
        order = torch.argsort(node * (count.max() + 1 if len(count) else 1) + count, stable=True)
        node, part, count = node[order], part[order], count[order]
        last = torch.ones_like(node, dtype=torch.bool)
        last[:-1] = node[1:] != node[:-1]
        return Wishes(node[last], part[last], count[last])

    def _join(self, wishes: Wishes) -> bool:
        """Grant wishes, highest gain first, while there is room and no part loses too many; whether any was granted."""
        size = torch.bincount(self.part[self.part >= 0], minlength=self.parts)
        order = torch.argsort(wishes.gain, descending=True, stable=True)
        node, part = wishes.node[order], wishes.part[order]
        left = self.part[node]
        may_leave = (left < 0) | (_rank(left, self.parts) < (size - self.least)[left])
        node, part = node[may_leave], part[may_leave]
        granted = _rank(part, self.parts) < (self.capacity - size)[part]
        self.part[node[granted]] = part[granted]
        return bool(granted.any())

    def _places(self) -> Tensor:
        """A part for each free place, the smallest parts first."""
        room = self.capacity - torch.bincount(self.part[self.part >= 0], minlength=self.parts)
        part = torch.arange(self.parts, device=room.device).repeat_interleave(room)
        left = room[part] - _rank(part, self.parts)
        return part[torch.argsort(left, descending=True, stable=True)]


def _rank(group: Tensor, groups: int) -> Tensor:
    """How many earlier entries [·] have the same group; of -1, nothing is said."""
    order = torch.argsort(group, stable=True)
    first = torch.searchsorted(group[order], torch.arange(groups, device=group.device))
    rank = torch.empty_like(group)
    rank[order] = torch.arange(group.shape[0], device=group.device) - first[group[order].clamp(min=0)]
    return rank


def _metis(edge_index: Tensor, nodes: int, parts: int) -> Tensor:
    """By PyG's `ClusterData`."""
    both_ways = to_undirected(edge_index.cpu(), num_nodes=nodes)
    clusters = ClusterData(Data(edge_index=both_ways, num_nodes=nodes), parts, log=False).partition
    part = torch.empty(nodes, dtype=torch.int64)
    part[clusters.node_perm] = torch.arange(parts).repeat_interleave(clusters.partptr.diff())
    return part.to(edge_index.device)
