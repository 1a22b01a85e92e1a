"""The frozen structures that all rooms exchange: packed graphs, coordinates, pairs, batches.

Legend: G graphs, N nodes of all graphs, E edges, P stored pairs, C coordinate channels,
Z zero rows (0, or one per graph and one for padding), R = P + Z rows.

Direction, everywhere: **i receives, j sends**. As for every layer of PyG, a column of `edge_index` is (source, target),
and with the flow "source_to_target" the target receives: j → i, A_ij = 1. Receiver i looks back along its incoming
edges, a random walk from i may step against one to its source j, and its attribute belongs to the pair (i, j). With the
flow "target_to_source" the source receives. Undirected graphs hold both directions, and the flow changes nothing. Every
other index with two rows, of pairs or of a support, has the orientation of `edge_index`.

Pairs are stored row by row, all j of one i next to each other and ascending (CSR over receivers).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from ckgconv.checks import check_choice, check_device, check_index, check_shape, check_weights, require

Flow = Literal["source_to_target", "target_to_source"]
SOURCE_TO_TARGET: Flow = "source_to_target"
NARROW = (torch.int8, torch.int16, torch.int32, torch.uint8)
# A graph number beyond this one is a mistake: its pointers alone would fill gigabytes.
MOST_GRAPHS = 2**30


@dataclass(frozen=True)
class PackedGraphs:
    """G graphs one after the other, with node numbers consecutive over all of them.

    Self loops are edges like any other: a walk may stay. Parallel edges add up: A_ij is the sum of their weights. A
    graph may have no nodes, and there may be no graphs.
    """

    receiver: Tensor  # [E] int64, i of each edge
    sender: Tensor  # [E] int64, j of each edge
    edge_weight: Tensor | None  # [E] ≥ 0; None: every edge weighs 1
    node_graph: Tensor  # [N] int64, ascending
    node_ptr: Tensor  # [G + 1] int64, graph g owns nodes node_ptr[g] … node_ptr[g + 1] - 1

    @property
    def num_nodes(self) -> int:
        return self.node_graph.shape[0]

    @property
    def num_graphs(self) -> int:
        return self.node_ptr.shape[0] - 1

    @property
    def num_edges(self) -> int:
        return self.receiver.shape[0]

    @property
    def edge_index(self) -> Tensor:
        """[2, E] senders above receivers, as PyG's layers read it."""
        return torch.stack([self.sender, self.receiver])

    @property
    def sizes(self) -> Tensor:
        """[G] number of nodes of each graph."""
        return self.node_ptr.diff()

    @property
    def largest(self) -> int:
        """Nodes of the largest graph, 0 where there is none."""
        return int(self.sizes.max()) if self.num_graphs else 0

    def weights(self, dtype: torch.dtype) -> Tensor:
        """[E] edge weights, ones where none were given."""
        if self.edge_weight is None:
            return torch.ones(self.num_edges, dtype=dtype, device=self.receiver.device)
        return self.edge_weight.to(dtype)

    def degree(self, dtype: torch.dtype) -> Tensor:
        """[N] d_i = Σ_j A_ij, the (weighted) degree of i as a receiver; 0 where it has no sender."""
        zeros = torch.zeros(self.num_nodes, dtype=dtype, device=self.receiver.device)
        return zeros.index_add(0, self.receiver, self.weights(dtype))


@dataclass(frozen=True)
class Coordinates:
    """Pseudo-coordinates P of node pairs, sorted by receiver, then sender.

    All pairs of all graphs are stored (`complete`, Σ n² rows), or all that differ from zero, or, where far pairs are
    not zero, those that were asked for.
    """

    receiver: Tensor  # [P] int64
    sender: Tensor  # [P] int64
    values: Tensor  # [P, C], or [P] int64 for the shortest-path distance
    complete: bool
    zero_elsewhere: bool = True  # whether a pair that is not stored is zero; meaningless where all are stored
    within: int | None = None  # k, where the pairs are known to be all those within k hops


@dataclass(frozen=True)
class Pairs:
    """The support of a batch: CSR over receivers, plus the zero rows of the sparse global form.

    Rows P … P + Z - 1 of `coordinates` are the zero pair of graph 0, 1, …: it stands for all pairs of that graph
    that are not stored, and its `row_weight` is their number. In a batch of static capacity one more zero row, of
    weight 0, belongs to the padding nodes.
    """

    rowptr: Tensor  # [N + 1] int64, receiver i owns rows rowptr[i] … rowptr[i + 1] - 1
    receiver: Tensor  # [P] int64
    sender: Tensor  # [P] int64
    coordinates: Tensor  # [R, C], or [R] int64 for the shortest-path distance
    support_size: Tensor  # [N] |supp(i)|, floating
    node_graph: Tensor  # [N] int64, the graph of each node
    row_weight: Tensor | None  # [R] how often a row counts in batch statistics; None: once each
    graph_ptr: Tensor | None = None  # [Z + 1] where the nodes of each zero row's graph begin; None without zero rows
    # Only in batches of static capacity:
    filled: Tensor | None = None  # [1] int64, rows from this one on are padding; None: weights say which rows count
    # In batches of static capacity, and wherever a GPU needs the pairs ordered by sender:
    sender_ptr: Tensor | None = None  # [N + 1] sender j owns entries sender_ptr[j] … of `sender_rows`
    sender_rows: Tensor | None = None  # [P] rows by sender, then receiver
    sender_receiver: Tensor | None = None  # [P] receivers of these rows
    rescaled: Tensor | None = None  # [R, C] |supp(i)| P_ij of random walks; None: the step computes it
    # Only before the pairs are part of a batch:
    graphs: PackedGraphs | None = None  # the graphs whose pairs they are

    @property
    def num_pairs(self) -> int:
        """P, the stored pairs."""
        return self.sender.shape[0]

    @property
    def has_zero_rows(self) -> bool:
        return self.coordinates.shape[0] != self.sender.shape[0]


@dataclass(frozen=True)
class GraphBatch:
    """The input of a network, as tensors; nothing here depends on parameters."""

    node_features: Tensor  # [N, F] floating or int64
    node_encoding: Tensor  # [N, K] the node part of the encoding, such as return probabilities
    degree: Tensor  # [N]
    node_ptr: Tensor  # [G + 1] int64
    pairs: Pairs
    edge_row: Tensor  # [E'] int64, row in `pairs` of each edge that lies inside the support
    edge_features: Tensor | None  # [E', Fe] floating or int64
    position: Tensor | None  # [N, 2] node positions of superpixel graphs
    node_filled: Tensor | None = None  # [1] int64, nodes from this one on are padding; None: all nodes are real
    # [N] 1 for a node that counts in batch statistics, 0 for padding and for nodes that only send; None: all count
    node_weight: Tensor | None = None
    graph_features: Tensor | None = None  # [G, ·] what a head reads beside pooled nodes, NaN where unknown

    @property
    def num_graphs(self) -> int:
        return self.node_ptr.shape[0] - 1

    @property
    def edge_index(self) -> Tensor:
        """[2, E'] the edges inside the support, senders above receivers, as PyG's layers read it."""
        return torch.stack([self.pairs.sender[self.edge_row], self.pairs.receiver[self.edge_row]])


@dataclass(frozen=True)
class LayeredBatch:
    """Batches of the layers of a network, from the first to the last: a sample of one large graph.

    The receivers of a layer are the nodes of the next one, in the same order; those of the last are the seed nodes.
    """

    batches: tuple[GraphBatch, ...]
    receivers: tuple[Tensor, ...]  # [R] int64 each, which nodes of that batch are receivers; the others only send


class OpaqueBatch:
    """A batch that Lightning Fabric passes on as it is: it copies other dataclasses field by field."""

    def __init__(self, batch: GraphBatch | LayeredBatch) -> None:
        self.batch = batch


for _structure in (PackedGraphs, Coordinates, Pairs, GraphBatch):
    torch.export.register_dataclass(_structure, serialized_type_name=f"ckgconv.{_structure.__name__}")
    # A saved program holds its example, and torch reads only classes that it knows to be harmless.
    torch.serialization.add_safe_globals([_structure])


def pack(
    edge_index: Tensor,
    batch: Tensor | None = None,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    flow: Flow = SOURCE_TO_TARGET,
    num_graphs: int | None = None,
) -> PackedGraphs:
    """Check a PyG-style description of one or several graphs and pack it.

    Args:
        edge_index: [2, E] integers, sources above targets.
        batch: [N] integers, ascending, the graph of each node; None: one graph of `num_nodes` nodes. A number that it
            skips is a graph without nodes.
        edge_weight: [E] non-negative, or None.
        num_nodes: N, required where `batch` is None.
        flow: which end of an edge receives, "source_to_target" (the target, as in PyG) or "target_to_source".
        num_graphs: G, where graphs without nodes end the batch; by default up to the last number of `batch`.
    """
    check_shape("edge_index", edge_index, (2, None), "give edges as two rows, sources above targets.")
    check_device(edge_index=edge_index, batch=batch, edge_weight=edge_weight)
    if batch is None:
        require(num_nodes is not None, "Neither batch nor num_nodes was given: give the number of nodes.")
        batch = torch.zeros(num_nodes or 0, dtype=torch.int64, device=edge_index.device)
        num_graphs = num_graphs or 1
    check_shape("batch", batch, (num_nodes,), "give the graph number of each node.")
    edge_index, batch = as_int64(edge_index), as_int64(batch)
    _check_numbers(edge_index, batch, num_graphs)
    crossing = batch[edge_index[0]] != batch[edge_index[1]]
    if bool(crossing.any()):
        i, j = edge_index[:, int(crossing.int().argmax())].tolist()
        require(
            False, f"edge_index joins node {i} and node {j} of different graphs: correct batch, or remove the edge."
        )
    if edge_weight is not None:
        check_shape("edge_weight", edge_weight, (edge_index.shape[1],), "give one weight per edge.")
        check_weights("edge_weight", edge_weight)
    sizes = torch.bincount(batch, minlength=num_graphs or 0)
    receiver, sender = ends(edge_index, flow)
    return PackedGraphs(receiver, sender, edge_weight, batch, pointer(sizes))


def as_int64(index: Tensor) -> Tensor:
    """Integers of any width as int64; other dtypes as they are, for a check to refuse."""
    return index.long() if index.dtype in NARROW else index


def _check_numbers(edge_index: Tensor, batch: Tensor, num_graphs: int | None) -> None:
    """Refuse node and graph numbers that do not exist, and nodes that are not sorted by graph."""
    check_index("batch", batch, MOST_GRAPHS if num_graphs is None else num_graphs, "graph numbers")
    require(
        batch.numel() > 0 or edge_index.numel() == 0,
        f"The graphs are empty (0 nodes), but edge_index has {edge_index.shape[1]} edges: give the nodes that they "
        f"join, or no edges.",
    )
    check_index("edge_index", edge_index, batch.numel(), "node numbers")
    require(bool((batch.diff() >= 0).all()), "batch is not ascending: sort the nodes by graph.")


def pointer(counts: Tensor) -> Tensor:
    """[R + 1] int64, where each of R rows of the given lengths [R] begins, and where the last one ends."""
    return torch.cat([counts.new_zeros(1), counts]).long().cumsum(0)


def entries_of(counts: Tensor) -> tuple[Tensor, Tensor]:
    """The row of each entry [Σ counts], and its place within the row, of rows of the given lengths [R]."""
    row = torch.arange(counts.shape[0], device=counts.device).repeat_interleave(counts)
    return row, torch.arange(row.shape[0], device=row.device) - (counts.cumsum(0) - counts)[row]


def ends(index: Tensor, flow: Flow) -> tuple[Tensor, Tensor]:
    """Receivers and senders [·] of the columns of an index [2, ·], sources above targets."""
    check_choice("flow", flow, get_args(Flow))
    source, target = index
    return (target, source) if flow == SOURCE_TO_TARGET else (source, target)


def index_of(receiver: Tensor, sender: Tensor, flow: Flow) -> Tensor:
    """[2, ·] sources above targets: `ends`, undone."""
    return torch.stack([sender, receiver] if flow == SOURCE_TO_TARGET else [receiver, sender])
