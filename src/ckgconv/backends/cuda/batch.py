"""Batches of static capacity: whatever graphs a batch holds, its tensors have the same shapes.

Everything here is tensor operations of fixed shape on the device that holds the data, so a training step that starts
from graph numbers can be captured as one CUDA graph. No other file creates padding:

- nodes, pairs and edges behind the filled ones are padding; at least one of each always is, and padding points to it;
- padding has weight 0 in all statistics, belongs to no graph, and is not counted by any loss;
- a graph number of -1 is a graph without nodes.

Legend: G graphs, N nodes, P pairs, E edges: capacities, not counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.backends.cuda.assembly import Capacity, Edges, Members, members
from ckgconv.backends.cuda.assembly.naive import Ragged, ragged
from ckgconv.backends.cuda.streams import IN_ORDER, Streams
from ckgconv.backends.cuda.walk import walk_coordinates
from ckgconv.graphs import GraphBatch, Pairs, ends, pointer
from ckgconv.pairs.encoding import Encoding


@runtime_checkable
class AssembledModel(Protocol):
    """A model that reads values of a batch which depend on no weight: they are computed when the batch is assembled."""

    def assembled(self, batch: GraphBatch) -> GraphBatch:
        """The batch with these values; called in the mode, training or evaluation, of the step."""


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
class StoredPairs:
    """The support of every graph of a store with its coordinates, computed once (`store_pairs`)."""

    pair_ptr: Tensor  # [G + 1]
    receiver: Tensor  # [P] local to each graph
    sender: Tensor  # [P]
    sender_rows: Tensor  # [P] rows of each graph by sender, then receiver
    coordinates: Tensor  # [P, C], or [P] for the shortest-path distance
    edge_row: Tensor  # [E] row of each edge among those of its graph
    node_encoding: Tensor  # [N, K]
    degree: Tensor  # [N]


@dataclass(frozen=True)
class StoredCoordinates:
    """Coordinates of all pairs of every graph of a store, receiver by receiver, computed once (`store_pairs`)."""

    pair_ptr: Tensor  # [G + 1]
    coordinates: Tensor  # [P, C], or [P] for the shortest-path distance
    node_encoding: Tensor  # [N, K]
    degree: Tensor  # [N]


def store_pairs(batches: Iterable[GraphBatch]) -> StoredPairs | StoredCoordinates:
    """From eager batches that together hold every graph of a store in order, with all edges inside the support.

    Where the supports are whole graphs the pairs themselves follow from the sizes of the graphs.
    """
    whole, parts = True, []
    for batch in batches:
        whole = whole and _has_all_pairs(batch)
        parts.append(_stored_part(batch))
    columns = [torch.cat(column) for column in zip(*parts, strict=True)]
    counts, *others = columns
    stored = StoredPairs(pointer(counts), *others)
    if not whole:
        return stored
    return StoredCoordinates(stored.pair_ptr, stored.coordinates, stored.node_encoding, stored.degree)


def _has_all_pairs(batch: GraphBatch) -> bool:
    """Whether every pair within a graph is stored, without zero rows."""
    every = int(batch.node_ptr.diff().square().sum())
    return not batch.pairs.has_zero_rows and batch.pairs.num_pairs == every


def _stored_part(batch: GraphBatch) -> tuple[Tensor, ...]:
    pairs = batch.pairs
    graph = pairs.node_graph[pairs.receiver]
    counts = torch.bincount(graph, minlength=batch.num_graphs)
    first = batch.node_ptr[graph]
    start = counts.cumsum(0) - counts
    edge_row = batch.edge_row - start[graph[batch.edge_row]]
    # Zero rows are the same in every batch.
    values = pairs.coordinates[: pairs.num_pairs]
    values = values if values.is_floating_point() else values.short()
    return (
        counts,
        (pairs.receiver - first).int(),
        (pairs.sender - first).int(),
        # Graphs follow each other in this order too.
        (torch.sort(pairs.sender, stable=True)[1] - start[graph]).int(),
        values,
        edge_row,
        batch.node_encoding,
        batch.degree,
    )


def padded_batch(
    store: GraphStore,
    stored: StoredPairs | StoredCoordinates | None,
    numbers: Tensor,
    capacity: Capacity,
    encoding: Encoding,
    dtype: torch.dtype,
    streams: Streams = IN_ORDER,
) -> tuple[GraphBatch, Ragged]:
    """Graphs of the given numbers [G], and which nodes they are.

    Pairs come from `stored`; where only coordinates are, or nothing is, they are all pairs of each graph, in the latter
    case with walks computed here.
    """
    if isinstance(stored, StoredPairs):
        nodes = ragged(store.node_ptr, numbers, capacity.nodes)
        edges = ragged(store.edge_ptr, numbers, capacity.edges)
        edge, degree = edges.row, stored.degree[nodes.row].to(dtype) * nodes.real
        pairs, edge_row = _gathered(stored, nodes, edges, numbers, capacity, dtype)
        if encoding.support == "sparse_global":
            pairs = _with_zero_rows(pairs, stored, nodes, numbers)
        elif encoding.coordinate.rescaled:
            pairs = _with_rescaled(pairs)
        node_encoding = stored.node_encoding[nodes.row].to(dtype)
    else:
        like = torch.empty(0, dtype=dtype, device=numbers.device)
        edges_of = Edges(store.node_ptr, store.edge_ptr, *ends(store.edge_index, encoding.flow))
        found = members(edges_of, numbers, capacity, like)
        nodes, edge, edge_row, degree = found.nodes, found.edge, found.edge_row, found.degree
        if stored is None:
            streams.wait_for_prefetch()  # the launch of the walks occupies much of the device
            pairs, node_encoding = _walked(found, capacity, encoding.steps, dtype)
        else:
            pairs = _all_pairs(found, _looked_up(stored, found, numbers, dtype))
            pairs = _with_rescaled(pairs) if encoding.coordinate.rescaled else pairs
            degree = stored.degree[nodes.row].to(dtype) * nodes.real
            node_encoding = stored.node_encoding[nodes.row].to(dtype)
    batch = GraphBatch(
        node_features=widened(store.x[nodes.row], dtype),
        node_encoding=node_encoding,
        degree=degree,
        node_ptr=nodes.start,
        pairs=pairs,
        edge_row=edge_row,
        edge_features=None if store.edge_attr is None else widened(store.edge_attr[edge], dtype),
        position=None if store.pos is None else widened(store.pos[nodes.row], dtype),
        node_filled=nodes.start[-1:],
        node_weight=nodes.real.to(dtype),
    )
    return batch, nodes


def widened(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Features as [·, columns]: integers as int64, floats in the precision of the parameters."""
    values = values.to(dtype) if values.is_floating_point() else values.long()
    return values.unsqueeze(-1) if values.dim() == 1 else values


def _walked(found: Members, capacity: Capacity, steps: int, dtype: torch.dtype) -> tuple[Pairs, Tensor]:
    """All pairs of each graph with RRWP, and the node part [N, K]."""
    walks = walk_coordinates(found.matrix, found.sizes, found.pair_start, steps, capacity.pairs).to(dtype)
    return _with_rescaled(_all_pairs(found, walks)), walks[found.diagonal][:, 1:].contiguous()


def _looked_up(stored: StoredCoordinates, found: Members, numbers: Tensor, dtype: torch.dtype) -> Tensor:
    """Stored coordinates of all pairs; padding has those of the first pair of the store, with weight 0."""
    # How much further a row lies in the store than in the batch, for each graph; behind them for padding.
    shift = F.pad(stored.pair_ptr[numbers.clamp(min=0)] - found.pair_start, (0, 1))
    row = torch.arange(found.receiver.shape[0], device=numbers.device) + shift[found.nodes.owner[found.receiver]]
    values = stored.coordinates[torch.where(found.row_weight > 0, row, 0)]
    return values.to(dtype) if values.is_floating_point() else values.long()


def _all_pairs(found: Members, coordinates: Tensor) -> Pairs:
    """All pairs of each graph with the given coordinates."""
    return Pairs(
        rowptr=found.rowptr,
        receiver=found.receiver,
        sender=found.sender,
        coordinates=coordinates,
        support_size=found.support_size,
        node_graph=found.nodes.owner,
        row_weight=found.row_weight,
        filled=found.filled,
        # The list by senders of a whole graph is the transpose of that by receivers.
        sender_ptr=found.rowptr,
        sender_rows=found.transposed,
        sender_receiver=found.sender,
    )


def _with_rescaled(pairs: Pairs) -> Pairs:
    return replace(pairs, rescaled=pairs.coordinates * pairs.support_size[pairs.receiver].unsqueeze(-1))


def _with_zero_rows(pairs: Pairs, stored: StoredPairs, nodes: Ragged, numbers: Tensor) -> Pairs:
    """The sparse global form: a zero row for each graph, and one of weight 0 for the nodes of padding."""
    assert pairs.row_weight is not None
    sizes, graph = nodes.start.diff(), numbers.clamp(min=0)
    count = torch.where(numbers >= 0, stored.pair_ptr[graph + 1] - stored.pair_ptr[graph], 0)
    dtype, zero_rows = pairs.row_weight.dtype, sizes.shape[0] + 1
    # Padding has size 1, so that sums may be divided by it.
    size = F.pad(sizes, (0, 1), value=1)[nodes.owner].to(dtype)
    return replace(
        pairs,
        coordinates=F.pad(pairs.coordinates, (0, 0, 0, zero_rows)),
        rescaled=F.pad(pairs.coordinates * size[pairs.receiver].unsqueeze(-1), (0, 0, 0, zero_rows)),
        support_size=size,
        row_weight=torch.cat([pairs.row_weight, F.pad((sizes**2 - count).to(dtype), (0, 1))]),
        graph_ptr=torch.cat([nodes.start, nodes.start.new_full((1,), nodes.row.shape[0])]),
        # Zero rows follow the padding: all rows are computed, and the weights decide which count.
        filled=None,
    )


def _gathered(
    stored: StoredPairs, nodes: Ragged, edges: Ragged, numbers: Tensor, capacity: Capacity, dtype: torch.dtype
) -> tuple[Pairs, Tensor]:
    """Stored pairs of each graph, and the rows of edges [E]."""
    rows = ragged(stored.pair_ptr, numbers, capacity.pairs)
    first = nodes.start[rows.owner]
    dummy = capacity.nodes - 1
    receiver = torch.where(rows.real, first + stored.receiver[rows.row].long(), dummy)
    sender = torch.where(rows.real, first + stored.sender[rows.row].long(), dummy)
    node = torch.arange(capacity.nodes + 1, device=numbers.device)
    row = torch.arange(capacity.pairs, device=numbers.device)
    sender_rows = torch.where(rows.real, rows.start[rows.owner] + stored.sender_rows[rows.row].long(), row)
    # Padding follows all real rows and belongs to the last node, which is padding itself. That node has an empty list:
    # otherwise a sum over pairs would read all of the padding.
    rowptr = torch.searchsorted(receiver, node).clamp(max=rows.start[-1])
    values = stored.coordinates[rows.row]
    edge_row = rows.start[edges.owner] + stored.edge_row[edges.row]
    pairs = Pairs(
        rowptr=rowptr,
        receiver=receiver,
        sender=sender,
        coordinates=values.to(dtype) if values.is_floating_point() else values.long(),
        support_size=rowptr.diff().to(dtype).clamp(min=1),
        node_graph=nodes.owner,
        row_weight=rows.real.to(dtype),
        filled=rows.start[-1:],
        sender_ptr=torch.searchsorted(sender[sender_rows], node).clamp(max=rows.start[-1]),
        sender_rows=sender_rows,
        sender_receiver=receiver[sender_rows],
    )
    return pairs, torch.where(edges.real, edge_row, capacity.pairs - 1)
