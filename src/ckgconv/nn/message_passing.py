"""Message passing and GPS: what the field compares with, in the form in which it is strongest.

    local      m_i = layer(h, edges)                              GCN, GINE, GATv2, GatedGCN or PNA
    global     a_i = Σ_j softmax_j(Q h_i · K h_j / √d) V h_j      only in GPS: attention over the support, H heads
    block      h ← BN(h + m) (+ BN(h + a))                        residual sums where the recipe asks for them
               h ← BN(h + FFN(h))                                 likewise
    stem       h⁰ = node attributes + W BN(RWSE)

PyG's layers where PyG has them. Padding edges join the last node, which is padding itself, so that layers need not know
of them.

Legend: G graphs, N nodes, E edges, D width, H heads, T outputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv, PNAConv

from ckgconv.checks import check_probability, require
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.convolution import sender_lists
from ckgconv.nn.gated_gcn import GatedGCNLayer
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.head import make_relu_head
from ckgconv.nn.norm import WeightedBatchNorm, make_norm
from ckgconv.ops.convolution import Orders, scaled_convolution
from ckgconv.ops.dropout import dropout
from ckgconv.ops.softmax import summing_softmax
from ckgconv.recipe import MessagePassingRecipe

# PNA scales by log(d + 1) over its mean. The mean is that of molecules, degrees 1 to 3, whatever the data: another one
# multiplies each scaler by a constant, which the linear map after it absorbs.
PNA_DEGREES = torch.tensor([0, 1, 2, 1])


class MessagePassing(GraphModel):
    """A network of message-passing blocks, or of GPS blocks where the recipe has attention heads.

    Args:
        recipe: the layer, widths, what surrounds it, encoders and head.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.
    """

    Recipe = MessagePassingRecipe
    recipe: MessagePassingRecipe
    blocks: Sequence["MessagePassingBlock"]

    def __init__(self, recipe: MessagePassingRecipe) -> None:
        super().__init__(recipe)
        channels = self.encoding.node_channels
        self.position_norm = WeightedBatchNorm(channels) if channels else None
        self.position = nn.Linear(channels, recipe.width) if channels else None
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            MessagePassingBlock(recipe) for _ in range(recipe.blocks)
        )
        self.head = make_relu_head(recipe.head, recipe.width)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        h = self.node_encoder(batch.node_features, batch.node_features.shape[0])
        if self.position is not None and self.position_norm is not None:
            h = h + self.position(self.position_norm(batch.node_encoding, batch.node_weight))
        edges = h.new_zeros(batch.edge_row.shape[0], h.shape[1])
        if self.edge_encoder is not None:
            edges = self.edge_encoder(batch.edge_features, batch.edge_row.shape[0])
        for block in self.blocks:
            h, edges = block(h, edges, batch)
        return h


class MessagePassingBlock(nn.Module):
    """Layer, attention and feed-forward network, each with the residual sum and the norm that the recipe asks for.

    Shapes: h [N, D], edges [E, D] → h [N, D], edges [E, D].
    """

    def __init__(self, recipe: MessagePassingRecipe) -> None:
        super().__init__()
        width = recipe.width
        check_probability("dropout", recipe.dropout)
        self.dropout = recipe.dropout
        self.residual = recipe.residual
        self.layer = make_layer(recipe)
        self.layer_norm = make_norm(recipe.norm, width)
        heads = recipe.attention_heads
        self.attention = NodeAttention(width, heads, recipe.attention_dropout) if heads else None
        self.attention_norm = make_norm(recipe.norm, width) if heads else None
        self.ffn = nn.ModuleList([nn.Linear(width, 2 * width), nn.Linear(2 * width, width)]) if recipe.ffn else None
        self.ffn_norm = make_norm(recipe.norm, width) if recipe.ffn else None

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        passed, edges = self.layer(h, edges, batch)
        out = self.layer_norm(self._joined(h, passed), batch.node_weight)
        out = out if self.attention is not None or self.ffn is not None else torch.relu(out)
        if self.attention is not None and self.attention_norm is not None:
            attended = self._joined(h, self.attention(h, batch.pairs))
            out = out + self.attention_norm(attended, batch.node_weight)
        if self.ffn is not None and self.ffn_norm is not None:
            wide, narrow = self.ffn
            hidden = dropout(torch.relu(wide(out)), self.dropout, self.training)
            out = self.ffn_norm(out + dropout(narrow(hidden), self.dropout, self.training), batch.node_weight)
        # Norms ignore padding, so it could grow from block to block until 0 · ∞ is NaN.
        return out if batch.node_weight is None else out * batch.node_weight.unsqueeze(-1), edges

    def _joined(self, h: Tensor, change: Tensor) -> Tensor:
        change = dropout(change, self.dropout, self.training)
        return h + change if self.residual else change

    def extra_repr(self) -> str:
        return f"residual={self.residual}, dropout={self.dropout}"


class NodeAttention(nn.Module):
    """Attention over the support: h [N, D], `Pairs` → [N, D]."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        check_probability("attention_dropout", dropout)
        require(
            width % heads == 0,
            f"model.attention_heads is {heads}, which does not divide model.width = {width}: choose a divisor.",
        )
        self.heads = heads
        self.channels = width // heads
        self.dropout = dropout
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, h: Tensor, pairs: Pairs) -> Tensor:
        query, key, value = self.project(h).chunk(3, dim=-1)
        scores = (query[pairs.receiver] * key[pairs.sender]).view(-1, self.heads, self.channels).sum(-1)
        weights = summing_softmax(scores / self.channels**0.5, pairs.receiver, pairs.support_size)
        weights = dropout(weights, self.dropout, self.training).repeat_interleave(self.channels, dim=-1)
        orders = Orders(pairs.rowptr, sender_lists(pairs))
        summed = scaled_convolution(
            value.contiguous(), weights, pairs.receiver, pairs.sender, pairs.support_size, orders
        )
        return self.output(summed)


class GCNLayer(nn.Module):
    """Σ_j (d_i d_j)^(-½) W h_j over neighbours and the node itself (d counts it); edge attributes are not read."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = GCNConv(width, width, add_self_loops=False, normalize=False)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        sender, receiver = batch.edge_index
        scale = (batch.degree + 1).rsqrt()
        passed = self.layer(h, batch.edge_index, scale[sender] * scale[receiver])
        own = (scale.square().unsqueeze(-1) * h) @ self.layer.lin.weight.T
        return passed + own, edges


class GINELayer(nn.Module):
    """MLP((1 + ε) h_i + Σ_j ReLU(h_j + e_ij))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = GINEConv(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        return self.layer(h, batch.edge_index, edges), edges


class GATv2Layer(nn.Module):
    """Attention over the neighbours whose scores read edge attributes; a residual sum keeps the node itself."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        require(
            width % heads == 0,
            f"model.heads is {heads}, which does not divide model.width = {width}: choose a divisor.",
        )
        self.layer = GATv2Conv(width, width // heads, heads, add_self_loops=False, edge_dim=width)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        return self.layer(h, batch.edge_index, edges), edges


class PNALayer(nn.Module):
    """Mean, largest, smallest and s.d. of the messages, each under three scalers of the degree."""

    def __init__(self, width: int) -> None:
        super().__init__()
        aggregators, scalers = ["mean", "max", "min", "std"], ["identity", "amplification", "attenuation"]
        self.layer = PNAConv(width, width, aggregators, scalers, deg=PNA_DEGREES, edge_dim=width, divide_input=False)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        return self.layer(h, batch.edge_index, edges), edges


def make_layer(recipe: MessagePassingRecipe) -> nn.Module:
    """The layer of a recipe."""
    if recipe.layer == "gcn":
        return GCNLayer(recipe.width)
    if recipe.layer == "gine":
        return GINELayer(recipe.width)
    if recipe.layer == "gatv2":
        return GATv2Layer(recipe.width, recipe.heads)
    if recipe.layer == "pna":
        return PNALayer(recipe.width)
    return GatedGCNLayer(recipe.width, recipe.dropout, recipe.residual)
