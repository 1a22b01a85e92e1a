"""Message passing and GPS, also in their strongest published forms (GNN+).

    local      m_i = layer(h, edges)                              a GCN, GINE, GATv2, GatedGCN or PNA: `message_layers`
    block      h ← h + drop(σ(BN(m)))                             σ is ReLU or GELU; without an FFN this is all of it
               h ← BN(h), h ← BN(h + FFN(h))                      where the recipe asks for an FFN, as in GNN+
    GPS        a_i = Σ_j softmax_j(Q h_i · K h_j / √d) V h_j      attention over the support, H heads
               h ← BN(h + drop(m)) + BN(h + drop(a)), then the FFN as above; GatedGCN keeps its σ(BN(m))
    stem       h⁰ = node attributes + W BN(RWSE), or node attributes ‖ W BN(RWSE); Laplacian eigenvectors in place of
               RWSE have random signs in training

Before an FFN, GINE has no norm of its own. Without a residual sum "h +" is left out. Edges need no attributes (e_ij =
0), except in GatedGCN, whose edge state starts from them; attributes of kind 'constant' are one learned vector.

Layers are PyG's where PyG has them. Padding edges join the last node, which is padding itself, so layers can ignore
them.

Legend: G graphs, N nodes, E edges, D width, H heads, T outputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_probability, require
from ckgconv.graphs import GraphBatch
from ckgconv.nn.encoders import attribute_encoder
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.head import make_head, make_relu_head
from ckgconv.nn.linear import Linear
from ckgconv.nn.message_layers import make_layer
from ckgconv.nn.node_attention import NodeAttention, check_stored
from ckgconv.nn.node_input import with_drawn_signs
from ckgconv.nn.norm import WeightedBatchNorm, make_norm
from ckgconv.ops.dropout import dropout
from ckgconv.recipe import MessagePassingRecipe


class MessagePassing(GraphModel):
    """A network of message-passing blocks, or of GPS blocks where the recipe has attention heads.

    Args:
        recipe: the layer, widths, what surrounds it, encoders and head.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.

    Example:
        >>> model = MessagePassing.from_recipe("zinc-gps")
        >>> sum(parameter.numel() for parameter in model.parameters())
        423717
    """

    Recipe = MessagePassingRecipe
    recipe: MessagePassingRecipe
    blocks: Sequence["MessagePassingBlock"]

    def __init__(self, recipe: MessagePassingRecipe) -> None:
        super().__init__(recipe)
        self._check(recipe)
        channels, own = self.encoding.node_channels, recipe.encoding_channels
        if own:
            self.node_encoder = attribute_encoder(recipe.node, recipe.width - own)  # type: ignore[assignment]
        self.position_norm = WeightedBatchNorm(channels) if channels else None
        self.position = Linear(channels, own or recipe.width) if channels else None
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            MessagePassingBlock(recipe) for _ in range(recipe.blocks)
        )
        self.head = (make_head if recipe.activation == "gelu" else make_relu_head)(recipe.head, self.head_width)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        h = self._stem(batch)
        edges = h.new_zeros(batch.edge_row.shape[0], h.shape[1])
        if self.edge_encoder is not None:
            edges = self.edge_encoder(batch.edge_features, batch.edge_row.shape[0])
        for block in self.blocks:
            h, edges = block(h, edges, batch)
        return h

    def _stem(self, batch: GraphBatch) -> Tensor:
        """h⁰ [N, D]."""
        h: Tensor = self.node_encoder(batch.node_features, batch.node_features.shape[0])
        if self.position is None or self.position_norm is None:
            return h
        encoding = batch.node_encoding
        if self.training and self.encoding.coordinate.signed:
            encoding = with_drawn_signs(batch, self.encoding.steps)
        position = self.position(self.position_norm(encoding, batch.node_weight))
        return torch.cat([h, position], dim=-1) if self.recipe.encoding_channels else h + position

    def _check(self, recipe: MessagePassingRecipe) -> None:
        require(
            self.encoding.keeps_edges,
            "model.support is 0 hops, so that no edge lies inside it: message passing needs at least 1 hop.",
        )
        if recipe.attention_heads:
            check_stored(recipe.support)
        require(
            recipe.attention_heads > 0 or recipe.attention_dropout == 0,
            f"model.attention_dropout is {recipe.attention_dropout}, but there is no attention: set it to 0, or set "
            f"model.attention_heads.",
        )
        require(
            recipe.encoding_channels < recipe.width,
            f"model.encoding_channels is {recipe.encoding_channels}, which leaves none of model.width = {recipe.width} "
            f"to the attributes: choose a smaller number, or 0 to add the encoding to them.",
        )
        require(
            not recipe.encoding_channels or self.encoding.node_channels > 0,
            f"model.encoding_channels is {recipe.encoding_channels}, but the encoding has no node part: set "
            f"model.node_steps, or set model.encoding_channels to 0.",
        )


class MessagePassingBlock(nn.Module):
    """Layer, attention and feed-forward network, each with the residual sum and the norm that the recipe asks for.

    Shapes: h [N, D], edges [E, D] → h [N, D], edges [E, D].
    """

    def __init__(self, recipe: MessagePassingRecipe) -> None:
        super().__init__()
        width, heads = recipe.width, recipe.attention_heads
        check_probability("dropout", recipe.dropout)
        self.dropout = recipe.dropout
        self.residual = recipe.residual
        self.activation = F.gelu if recipe.activation == "gelu" else torch.relu
        self.layer = make_layer(recipe)
        # GPS takes what a layer passes as it is, except that of GatedGCN.
        self.activated = not heads or recipe.layer == "gatedgcn"
        normalised = self.activated and not (recipe.layer == "gine" and recipe.ffn)
        self.layer_norm = make_norm(recipe.norm, width) if normalised else None
        self.sum_norm = make_norm(recipe.norm, width) if recipe.ffn or heads else None
        self.attention = NodeAttention(width, heads, recipe.attention_dropout) if heads else None
        self.attention_norm = make_norm(recipe.norm, width) if heads else None
        self.ffn = nn.ModuleList([Linear(width, 2 * width), Linear(2 * width, width)]) if recipe.ffn else None
        self.ffn_norm = make_norm(recipe.norm, width) if recipe.ffn else None

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        passed, edges = self.layer(h, edges, batch)
        if self.layer_norm is not None:
            passed = self.layer_norm(passed, batch.node_weight)
        out = self._joined(h, self.activation(passed) if self.activated else passed)
        if self.sum_norm is not None:
            out = self.sum_norm(out, batch.node_weight)
        if self.attention is not None and self.attention_norm is not None:
            attended = self._joined(h, self.attention(h, batch.pairs))
            out = out + self.attention_norm(attended, batch.node_weight)
        if self.ffn is not None and self.ffn_norm is not None:
            wide, narrow = self.ffn
            hidden = dropout(self.activation(wide(out)), self.dropout, self.training)
            out = self.ffn_norm(out + dropout(narrow(hidden), self.dropout, self.training), batch.node_weight)
        # Norms ignore padding, so it could grow from block to block until 0 · ∞ is NaN.
        return out if batch.node_weight is None else out * batch.node_weight.unsqueeze(-1), edges

    def _joined(self, h: Tensor, change: Tensor) -> Tensor:
        """h + drop(change) [N, D], or without h where there is no residual sum."""
        change = dropout(change, self.dropout, self.training)
        return h + change if self.residual else change

    def extra_repr(self) -> str:
        return f"residual={self.residual}, dropout={self.dropout}"
