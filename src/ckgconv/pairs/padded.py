"""Batches of static capacity: whatever graphs a batch holds, its tensors have the same shapes.

Every step here is a tensor operation of fixed shape on the device that holds the data, so a training step that starts
from graph numbers can be captured as one CUDA graph. This is the only place that creates padding:

- nodes, pairs and edges behind the filled ones are padding; at least one of each always is, and padding points to it;
- padding has weight 0 in all statistics, belongs to no graph, and is not counted by any loss;
- a graph number of -1 is a graph without nodes.

Legend: G graphs, N nodes, P pairs, E edges: capacities, not counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.ops.walk import walk_coordinates
from ckgconv.pairs.encode import Encoding
from ckgconv.pe.walk import nonzero


class GraphStore(Protocol):
    """Packed graphs on a device (`ckgconv.data.PackedDataset`)."""

    @property
    def node_ptr(self) -> Tensor: ...
    @property
    def edge_ptr(self) -> Tensor: ...
    @property
    def edge_index(self) -> Tensor: ...
    @property
    def x(self) -> Tensor: ...
    @property
    def edge_attr(self) -> Tensor | None: ...
    @property
    def pos(self) -> Tensor | None: ...


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


@dataclass(frozen=True)
class Ragged:
    """Rows of a packed array that a batch takes, at capacity."""

    index: Tensor  # [M] row in the packed array; 0 for padding
    owner: Tensor  # [M] place of its graph in the batch; G for padding
    start: Tensor  # [G + 1] first row of each graph in the batch
    real: Tensor  # [M] bool


@dataclass(frozen=True)
class StoredPairs:
    """The support of every graph of a store with its coordinates, computed once (`store_pairs`)."""

    pair_ptr: Tensor  # [G + 1]
    receiver: Tensor  # [P] local to each graph
    sender: Tensor  # [P]
    coordinates: Tensor  # [P, C], or [P] for the shortest-path distance
    edge_row: Tensor  # [E] row of each edge among those of its graph
    node_encoding: Tensor  # [N, K]


def store_pairs(batches: Iterable[GraphBatch]) -> StoredPairs:
    """From eager batches that together hold every graph of a store in order, with all edges inside the support."""
    parts = [_stored_part(batch) for batch in batches]
    columns = [torch.cat(column) for column in zip(*parts, strict=True)]
    counts, *others = columns
    return StoredPairs(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), *others)


def _stored_part(batch: GraphBatch) -> tuple[Tensor, ...]:
    pairs = batch.pairs
    graph = pairs.node_graph[pairs.receiver]
    counts = torch.bincount(graph, minlength=batch.num_graphs)
    first = batch.node_ptr[graph]
    start = counts.cumsum(0) - counts
    edge_row = batch.edge_row - start[graph[batch.edge_row]]
    values = pairs.coordinates if pairs.coordinates.is_floating_point() else pairs.coordinates.short()
    return (
        counts,
        (pairs.receiver - first).int(),
        (pairs.sender - first).int(),
        values,
        edge_row,
        batch.node_encoding,
    )


def ragged(pointers: Tensor, numbers: Tensor, capacity: int) -> Ragged:
    """Rows pointers[g] … pointers[g + 1] - 1 for each g of `numbers` [G], one after the other."""
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


def padded_batch(
    store: GraphStore,
    stored: StoredPairs | None,
    numbers: Tensor,
    capacity: Capacity,
    encoding: Encoding,
    dtype: torch.dtype,
) -> tuple[GraphBatch, Ragged]:
    """Graphs of the given numbers [G], and which nodes they are.

    Pairs come from `stored`, or, where there are none, are all pairs of each graph with walks computed here.
    """
    nodes = ragged(store.node_ptr, numbers, capacity.nodes)
    edges = ragged(store.edge_ptr, numbers, capacity.edges)
    ends = store.edge_index[:, edges.index].long()
    owner = edges.owner.clamp(max=capacity.graphs - 1)
    weight = edges.real.to(dtype)
    if stored is None:
        pairs, edge_row, node_encoding = _walked(nodes, edges, ends, capacity, encoding.steps, dtype)
    else:
        pairs, edge_row = _gathered(stored, nodes, edges, numbers, capacity, dtype)
        pairs = _with_rescaled(pairs) if encoding.name == "rrwp" else pairs
        node_encoding = stored.node_encoding[nodes.index].to(dtype)
    degree = torch.zeros(capacity.nodes, dtype=dtype, device=numbers.device)
    batch = GraphBatch(
        node_features=widened(store.x[nodes.index], dtype),
        node_encoding=node_encoding,
        degree=degree.index_add(0, nodes.start[owner] + ends[0], weight),
        node_ptr=nodes.start,
        pairs=pairs,
        edge_row=edge_row,
        edge_features=None if store.edge_attr is None else widened(store.edge_attr[edges.index], dtype),
        position=None if store.pos is None else widened(store.pos[nodes.index], dtype),
        node_filled=nodes.start[-1:],
        node_weight=nodes.real.to(dtype),
    )
    return batch, nodes


def widened(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Features as [·, columns]: integers as int64, floats in the precision of the parameters."""
    values = values.to(dtype) if values.is_floating_point() else values.long()
    return values.unsqueeze(-1) if values.dim() == 1 else values


def _transition(ends: Tensor, owner: Tensor, weight: Tensor, capacity: Capacity) -> Tensor:
    """M [G, n, n] of edges with local ends [2, E]; edges of padding weigh nothing."""
    largest = capacity.largest
    cell = (owner * largest + ends[0]) * largest + ends[1]
    flat = torch.zeros(capacity.graphs * largest**2, dtype=weight.dtype, device=cell.device)
    # Sums of ones are exact in any order.
    matrix = flat.index_add(0, cell, weight).view(capacity.graphs, largest, largest)
    return matrix / nonzero(matrix.sum(-1, keepdim=True))


def _walked(
    nodes: Ragged, edges: Ragged, ends: Tensor, capacity: Capacity, steps: int, dtype: torch.dtype
) -> tuple[Pairs, Tensor, Tensor]:
    """All pairs of each graph with RRWP, the rows of edges [E] and the node part [N, K]."""
    sizes = nodes.start.diff()
    owner = edges.owner.clamp(max=capacity.graphs - 1)
    matrix = _transition(ends, owner, edges.real.to(dtype), capacity)
    pair_stop = (sizes**2).cumsum(0)
    pair_start = pair_stop - sizes**2
    coordinates = walk_coordinates(matrix, sizes, pair_start, steps, capacity.pairs).to(dtype)
    local = torch.arange(capacity.nodes, device=sizes.device) - nodes.start[nodes.owner]
    pairs = _with_rescaled(_global_pairs(nodes, local, sizes, pair_start, pair_stop[-1:], coordinates, capacity))
    edge_row = torch.where(edges.real, pair_start[owner] + ends[0] * sizes[owner] + ends[1], capacity.pairs - 1)
    diagonal = torch.where(nodes.real, pairs.rowptr[:-1] + local, capacity.pairs - 1)
    return pairs, edge_row, coordinates[diagonal][:, 1:].contiguous()


def _with_rescaled(pairs: Pairs) -> Pairs:
    return replace(pairs, rescaled=pairs.coordinates * pairs.support_size[pairs.receiver].unsqueeze(-1))


def _gathered(
    stored: StoredPairs, nodes: Ragged, edges: Ragged, numbers: Tensor, capacity: Capacity, dtype: torch.dtype
) -> tuple[Pairs, Tensor]:
    """Stored pairs of each graph, and the rows of edges [E]."""
    rows = ragged(stored.pair_ptr, numbers, capacity.pairs)
    first = nodes.start[rows.owner]
    dummy = capacity.nodes - 1
    receiver = torch.where(rows.real, first + stored.receiver[rows.index].long(), dummy)
    sender = torch.where(rows.real, first + stored.sender[rows.index].long(), dummy)
    node = torch.arange(capacity.nodes + 1, device=numbers.device)
    # Padding sorts behind all real rows: it belongs to the last node, which is padding itself.
    sorted_sender, sender_rows = torch.sort(sender, stable=True)
    rowptr = torch.searchsorted(receiver, node)
    values = stored.coordinates[rows.index]
    edge_row = rows.start[edges.owner] + stored.edge_row[edges.index]
    pairs = Pairs(
        rowptr=rowptr,
        receiver=receiver,
        sender=sender,
        coordinates=values.to(dtype) if values.is_floating_point() else values.long(),
        support_size=rowptr.diff().to(dtype).clamp(min=1),
        node_graph=nodes.owner,
        row_weight=rows.real.to(dtype),
        filled=rows.start[-1:],
        sender_ptr=torch.searchsorted(sorted_sender, node),
        sender_rows=sender_rows,
        sender_receiver=receiver[sender_rows],
    )
    return pairs, torch.where(edges.real, edge_row, capacity.pairs - 1)


def _global_pairs(
    nodes: Ragged,
    local: Tensor,
    sizes: Tensor,
    pair_start: Tensor,
    filled: Tensor,
    coordinates: Tensor,
    capacity: Capacity,
) -> Pairs:
    """All pairs of each graph; every graph's list by senders is the transpose of that by receivers."""
    owner = nodes.owner.clamp(max=capacity.graphs - 1)
    reach = torch.where(nodes.real, sizes[owner], 0)
    stop = reach.cumsum(0)
    row = torch.arange(capacity.pairs, device=stop.device)
    receiver = torch.searchsorted(stop, row, right=True).clamp(max=capacity.nodes - 1)
    real = row < filled
    graph = owner[receiver]
    place = row - (stop - reach)[receiver]
    sender = torch.where(real, nodes.start[graph] + place, capacity.nodes - 1)
    transposed = torch.where(real, pair_start[graph] + place * sizes[graph] + local[receiver], row)
    rowptr = torch.cat([stop.new_zeros(1), stop])
    return Pairs(
        rowptr=rowptr,
        receiver=receiver,
        sender=sender,
        coordinates=coordinates,
        support_size=reach.to(coordinates.dtype).clamp(min=1),
        node_graph=nodes.owner,
        row_weight=real.to(coordinates.dtype),
        filled=filled,
        sender_ptr=rowptr,
        sender_rows=transposed,
        sender_receiver=sender,
    )
