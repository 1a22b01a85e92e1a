"""One large graph, or several as one, of which a step reads only some receivers with their supports.

    nodes of a batch  {i} ∪ {j}    pairs  (i, j), j ∈ supp(i), with P_ij, |supp(i)| and d_i of the whole graph

Legend: N nodes, E edges, R receivers, P pairs, T pairs of the tables, S nodes of a batch, K channels of the node part.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch_geometric.data import Data

from ckgconv.checks import require
from ckgconv.graphs import GraphBatch, PackedGraphs, Pairs, entries_of, pack, pointer
from ckgconv.nn.graph_model import GraphModel
from ckgconv.pairs.memory import free_bytes
from ckgconv.pairs.rows import Rows, StoredRows, WalkedRows, survey
from ckgconv.recipe import PairNetworkRecipe

# Of the free memory of the device of the graph, for the rows of all receivers; while they are joined it is twice that.
SHARE = 0.25


@dataclass(frozen=True)
class Excerpt:
    """Some receivers and the nodes that send to them, as a batch on the device of the model."""

    batch: GraphBatch
    nodes: Tensor  # [S] int64 their numbers in the large graph, ascending
    receivers: Tensor  # [R] int64 which of these nodes are the receivers, in order


@dataclass(frozen=True)
class EdgeList:
    """All edges, sorted by receiver, then sender; parallel edges are next to each other."""

    key: Tensor  # [E] receiver · N + sender
    features: Tensor | None  # [E, Fe]

    def on(self, wanted: Tensor) -> tuple[Tensor, Tensor | None]:
        """Edges on the pairs of the given keys [P]: the row of each among the pairs, and its attributes."""
        first = torch.searchsorted(self.key, wanted)
        count = torch.searchsorted(self.key, wanted, right=True) - first
        row, within = entries_of(count)
        return row, None if self.features is None else self.features[first[row] + within]


@dataclass(frozen=True)
class LargeGraph:
    """What batches are taken from; on the device of the data."""

    x: Tensor  # [N, F]
    degree: Tensor  # [N]
    node_encoding: Tensor  # [N, K]
    edges: EdgeList
    rows: WalkedRows | StoredRows
    rescaled: bool  # whether networks read |supp(i)| P_ij
    device: torch.device  # of the batches

    @property
    def num_nodes(self) -> int:
        return self.degree.shape[0]

    def excerpt(self, receivers: Tensor, rows: Rows, row: Tensor, entry: Tensor) -> Excerpt:
        """The batch of some pairs of the given receivers [R], which ascend.

        Args:
            rows: of these receivers.
            row, entry: [P] number of the receiver, and entry of `rows`, of each pair, ascending.
        """
        sender, coordinates = rows.sender[entry].long(), rows.coordinates[entry]
        nodes, place = torch.unique(torch.cat([receivers, sender]), return_inverse=True)
        own, local_sender = place.split([receivers.shape[0], sender.shape[0]])
        count = torch.bincount(own[row], minlength=nodes.shape[0])
        edge_row, edge_features = self.edges.on(receivers[row] * self.num_nodes + sender)
        size = rows.size[row].to(coordinates.dtype).unsqueeze(-1)
        pairs = Pairs(
            rowptr=pointer(count),
            receiver=own[row],
            sender=local_sender,
            coordinates=coordinates,
            support_size=count.to(coordinates.dtype),
            node_graph=torch.zeros_like(nodes),
            row_weight=None,
            # Of the whole support, also where a mean runs over a part of it.
            rescaled=coordinates * size if self.rescaled else None,
        )
        counts = None
        if nodes.shape[0] > receivers.shape[0]:
            counts = torch.zeros_like(self.degree[nodes]).index_fill_(0, own, 1.0)
        batch = GraphBatch(
            node_features=self.x[nodes],
            node_encoding=self.node_encoding[nodes],
            degree=self.degree[nodes],
            node_ptr=torch.tensor([0, nodes.shape[0]], device=nodes.device),
            pairs=pairs,
            edge_row=edge_row,
            edge_features=edge_features,
            position=None,
            node_weight=counts,
        )
        batch = pytree.tree_map(lambda value: value.to(self.device) if isinstance(value, Tensor) else value, batch)
        return Excerpt(batch, nodes, own.to(self.device))

    def whole(self, receivers: Tensor) -> Excerpt:
        """All pairs of the receivers [R], which ascend."""
        rows = self.rows.rows(receivers)
        return self.excerpt(receivers, rows, *rows.all_entries())

    def without_pairs(self, nodes: Tensor) -> Excerpt:
        """Nodes [R], which ascend, and no pairs: enough for the states before the first layer."""
        none = nodes[:0]
        rows = Rows(none, none, none, self.node_encoding.new_zeros(0, self.rows.channels))
        return self.excerpt(nodes, rows, none, none)


def large_graph(model: GraphModel, data: Data, device: torch.device) -> LargeGraph:
    """All graphs of `data` as one; `device` of the batches."""
    require(
        model.depth > 0,
        f"A model of kind {model.recipe.kind!r} cannot be run layer by layer: set training.sampling.kind to 'none'.",
    )
    require(
        not model.recipe.position_channels and model.predicts_nodes,
        "Samples of one large graph are for predictions of nodes without positions: set training.sampling.kind to "
        "'none', or model.head.pooling to 'none' and model.position_channels to 0.",
    )
    require(
        not (isinstance(model.recipe, PairNetworkRecipe) and model.recipe.size_features),
        "model.size_features is true, but a sample of one large graph does not have its order: set it to false, or set "
        "training.sampling.kind to 'none'.",
    )
    encoding = model.encoding
    graphs = pack(data.edge_index, data.batch, getattr(data, "edge_weight", None), data.num_nodes, encoding.flow)
    model.node_encoder.check("x", data.x, graphs.num_nodes)
    if model.edge_encoder is not None:
        model.edge_encoder.check("edge_attr", data.edge_attr, graphs.num_edges)
    free = free_bytes(graphs.receiver.device)
    found = survey(WalkedRows(graphs, encoding, model.dtype), SHARE * (free or 0))
    return LargeGraph(
        x=data.x,
        degree=graphs.degree(model.dtype),
        node_encoding=found.node_part,
        edges=_edge_list(graphs, data.edge_attr),
        rows=found.rows,
        rescaled=encoding.coordinate.rescaled,
        device=device,
    )


def _edge_list(graphs: PackedGraphs, attributes: Tensor | None) -> EdgeList:
    key, order = torch.sort(graphs.receiver * graphs.num_nodes + graphs.sender, stable=True)
    if attributes is None:
        return EdgeList(key, None)
    return EdgeList(key, (attributes if attributes.dim() == 2 else attributes.unsqueeze(-1))[order])
