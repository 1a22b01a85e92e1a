"""The nodes, edges and pairs of a batch at capacity, one tensor operation after the other.

Graph g of the batch owns nodes s_g … s_g + n_g - 1 and pairs p_g … p_g + n_g² - 1, with s and p the sums of n and n²
before it. Its pair (i, j) is row p_g + i n_g + j, and an edge (i, j) adds to M_ij, the step of a walk from i to j.

All later rows are padding: nodes of no graph, pairs of the last node, which is padding itself, edges at the last pair.

Legend: G graphs, N nodes, P pairs, E edges: capacities, not counts; n nodes of the largest graph.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.graphs import pointer


@dataclass(frozen=True)
class Capacity:
    """Shapes of a batch."""

    graphs: int  # G
    nodes: int  # N
    pairs: int  # P
    edges: int  # E
    largest: int  # nodes of the largest graph

    def holds(self, other: "Capacity") -> bool:
        """Whether a batch of the other capacity fits."""
        mine = (self.graphs, self.nodes, self.pairs, self.edges, self.largest)
        theirs = (other.graphs, other.nodes, other.pairs, other.edges, other.largest)
        return all(a >= b for a, b in zip(mine, theirs, strict=True))


class Edges(NamedTuple):
    """Graphs of a store by their edges."""

    node_ptr: Tensor  # [· + 1] where the nodes of each graph begin
    edge_ptr: Tensor  # [· + 1] where its edges begin
    receiver: Tensor  # [·] integers, local to each graph
    sender: Tensor  # [·]


class Ragged(NamedTuple):
    """The rows of a packed array that belong to a batch, at capacity."""

    row: Tensor  # [M] row in the packed array; 0 for padding
    owner: Tensor  # [M] index of its graph in the batch; G for padding
    start: Tensor  # [G + 1] first row of each graph in the batch
    real: Tensor  # [M] bool


class Members(NamedTuple):
    """What a batch holds."""

    nodes: Ragged
    edge: Tensor  # [E] row in the packed arrays of edges; 0 for padding
    edge_row: Tensor  # [E] the pair of each edge
    degree: Tensor  # [N]
    matrix: Tensor  # [G, n, n] M, rows of nodes without edges are zero
    sizes: Tensor  # [G] n_g
    pair_start: Tensor  # [G] p_g
    filled: Tensor  # [1] pairs that are not padding
    rowptr: Tensor  # [N + 1] first pair of each node
    support_size: Tensor  # [N] n_g; 1 for padding
    diagonal: Tensor  # [N] the pair of each node with itself; the last one for padding
    receiver: Tensor  # [P]
    sender: Tensor  # [P]
    transposed: Tensor  # [P] the pair (j, i) of each pair (i, j)
    row_weight: Tensor  # [P] 1, 0 for padding


def ragged(pointers: Tensor, numbers: Tensor, capacity: int) -> Ragged:
    """Rows pointers[g] … pointers[g + 1] - 1 for each g of `numbers` [G], one after the other; -1 has none."""
    graph = numbers.clamp(min=0)
    first = pointers[graph]
    length = torch.where(numbers >= 0, pointers[graph + 1] - first, 0)
    stop = length.cumsum(0)
    place = torch.arange(capacity, device=numbers.device)
    owner = torch.searchsorted(stop, place, right=True)
    real = owner < numbers.shape[0]
    safe = owner.clamp(max=numbers.shape[0] - 1)
    index = torch.where(real, first[safe] + place - (stop - length)[safe], 0)
    return Ragged(index, owner, torch.cat([stop.new_zeros(1), stop]), real)


def members(store: Edges, numbers: Tensor, capacity: Capacity, dtype: torch.dtype) -> Members:
    """The members of a batch of the graphs with the given numbers [G], and all their pairs; -1: no graph."""
    nodes, edges = ragged(store.node_ptr, numbers, capacity.nodes), ragged(store.edge_ptr, numbers, capacity.edges)
    sizes = nodes.start.diff()
    pair_stop = (sizes**2).cumsum(0)
    pair_start = pair_stop - sizes**2
    last = capacity.graphs - 1
    i, j = store.receiver[edges.row].long(), store.sender[edges.row].long()
    graph, weight = edges.owner.clamp(max=last), edges.real.to(dtype)
    matrix = weight.new_zeros(capacity.graphs * capacity.largest**2)
    # Sums of ones are exact in any order.
    matrix = matrix.index_add(0, (graph * capacity.largest + i) * capacity.largest + j, weight)
    matrix = matrix.view(capacity.graphs, capacity.largest, capacity.largest)
    total = matrix.sum(-1, keepdim=True)
    receiving = torch.where(edges.real, nodes.start[graph] + i, capacity.nodes - 1)

    size = torch.where(nodes.real, sizes[nodes.owner.clamp(max=last)], 0)
    rowptr = pointer(size)
    local = torch.arange(capacity.nodes, device=sizes.device) - nodes.start[nodes.owner]

    row = torch.arange(capacity.pairs, device=sizes.device)
    receiver = torch.searchsorted(rowptr[1:], row, right=True).clamp(max=capacity.nodes - 1)
    real = row < pair_stop[-1]
    owner = nodes.owner.clamp(max=last)[receiver]
    place = row - rowptr[receiver]
    return Members(
        nodes=nodes,
        edge=edges.row,
        edge_row=torch.where(edges.real, pair_start[graph] + i * sizes[graph] + j, capacity.pairs - 1),
        degree=weight.new_zeros(capacity.nodes).index_add(0, receiving, weight),
        matrix=matrix / torch.where(total == 0, 1, total),
        sizes=sizes,
        pair_start=pair_start,
        filled=pair_stop[-1:],
        rowptr=rowptr,
        support_size=size.to(dtype).clamp(min=1),
        diagonal=torch.where(nodes.real, rowptr[:-1] + local, capacity.pairs - 1),
        receiver=receiver,
        sender=torch.where(real, nodes.start[owner] + place, capacity.nodes - 1),
        transposed=torch.where(real, pair_start[owner] + place * sizes[owner] + local[receiver], row),
        row_weight=real.to(dtype),
    )
