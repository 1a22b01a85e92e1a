"""SAN: attention over all pairs in which edges and other pairs have queries, keys and a softmax of their own.

    h⁰_i = node attributes ‖ p_i                                       p from the spectrum of the Laplacian
    s_ij = clamp((Q h_i ⊙ K h_j) · E e_ij / √d, ±5)                    of edges, e_ij their attributes
    s'_ij = clamp((Q' h_i ⊙ K' h_j) · E' c / √d, ±5)                   of all other pairs, c one learned vector
    α_ij = softmax_j(s_ij) / (1 + γ), α'_ij = γ softmax_j(s'_ij) / (1 + γ)
    h ← BN(h + drop(O Σ_j (α_ij + α'_ij) V h_j))                       H heads of d channels
    h ← BN(h + drop(FFN(h)))
    ŷ  = head(pool(hᴸ))

Signs of eigenvectors are drawn anew in training. Scores are bounded, so that softmaxes are plain quotients: each is
empty, and its sum 0, where a node has no edge, or edges to all.

Legend: G graphs, N nodes, P pairs, E edges, D width, H heads of d = D/H channels, T outputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ckgconv.checks import require
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.convolution import sender_order
from ckgconv.nn.encoders import attribute_encoder
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.head import make_relu_head
from ckgconv.nn.linear import Linear
from ckgconv.nn.node_attention import check_heads, check_stored
from ckgconv.nn.node_input import orders, with_drawn_signs
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.spectral_encoder import SpectralEncoder
from ckgconv.ops.dropout import dropout
from ckgconv.ops.pool import pool, spread
from ckgconv.ops.rows import gather_rows
from ckgconv.recipe import SANRecipe

LARGEST_SCORE = 5.0
EPSILON = 1e-6


class SAN(GraphModel):
    """The spectral attention network that a recipe describes.

    Args:
        recipe: encoders, width, heads, weight of the far pairs, support and head.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.
    """

    Recipe = SANRecipe
    recipe: SANRecipe
    blocks: Sequence["SANBlock"]

    def __init__(self, recipe: SANRecipe) -> None:
        super().__init__(recipe)
        check_san(recipe)
        own = recipe.encoding_channels
        self.node_encoder = attribute_encoder(recipe.node, recipe.width - own)  # type: ignore[assignment]
        self.spectral_encoder = SpectralEncoder(own, recipe.encoding_layers, recipe.encoding_heads)
        self.other_pairs = nn.Embedding(1, recipe.width)
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            SANBlock(recipe) for _ in range(recipe.blocks)
        )
        self.head = make_relu_head(recipe.head, self.head_width)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        spectrum = with_drawn_signs(batch, self.encoding.steps) if self.training else batch.node_encoding
        attributes = self.node_encoder(batch.node_features, batch.node_features.shape[0])
        h = torch.cat([attributes, self.spectral_encoder(spectrum, orders(batch) - 1)], dim=-1)
        assert self.edge_encoder is not None
        edges = self.edge_encoder(batch.edge_features, batch.edge_row.shape[0])
        for block in self.blocks:
            h = block(h, edges, self.other_pairs.weight, batch)
        return h


class SANBlock(nn.Module):
    """Attention and feed-forward network: h [N, D], edges [E, D], other pairs [1, D], `GraphBatch` → h [N, D]."""

    def __init__(self, recipe: SANRecipe) -> None:
        super().__init__()
        width = recipe.width
        self.dropout = recipe.dropout
        self.attention = SpectralAttention(width, recipe.heads, recipe.gamma)
        self.projection = Linear(width, width)
        self.attention_norm = WeightedBatchNorm(width)
        self.ffn_in = Linear(width, 2 * width)
        self.ffn_out = Linear(2 * width, width)
        self.ffn_norm = WeightedBatchNorm(width)

    def forward(self, h: Tensor, edges: Tensor, other: Tensor, batch: GraphBatch) -> Tensor:
        h = h + self._drop(self.projection(self.attention(h, edges, other, batch)))
        h = self.attention_norm(h, batch.node_weight)
        h = h + self._drop(self.ffn_out(torch.relu(self.ffn_in(h))))
        h = self.ffn_norm(h, batch.node_weight)
        # Norms ignore padding, so it could grow from block to block until 0 · ∞ is NaN.
        return h if batch.node_weight is None else h * batch.node_weight.unsqueeze(-1)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


class SpectralAttention(nn.Module):
    """Σ_j (α_ij + α'_ij) V h_j: h [N, D], edges [E, D], other pairs [1, D], `GraphBatch` → [N, D]."""

    def __init__(self, width: int, heads: int, gamma: float) -> None:
        super().__init__()
        self.heads = heads
        self.channels = width // heads
        self.gamma = gamma
        self.project = Linear(width, 5 * width, bias=False)  # Q, K, Q', K', V
        self.edge = Linear(width, width, bias=False)
        self.other = Linear(width, width, bias=False)

    def forward(self, h: Tensor, edges: Tensor, other: Tensor, batch: GraphBatch) -> Tensor:
        pairs, row = batch.pairs, batch.edge_row
        # Copies, not `contiguous`, which depends on whether there is more than one node: an exported program may not.
        parts = (part.clone(memory_format=torch.contiguous_format) for part in self.project(h).chunk(5, dim=-1))
        query, key, other_query, other_key, value = parts
        on_rows = h.new_zeros(pairs.num_pairs, h.shape[1]).index_add(0, row, self.edge(edges).to(h.dtype))
        joined = h.new_zeros(pairs.num_pairs, 1).index_fill(0, row, 1.0)
        near = self.shares(query, key, on_rows, joined, pairs)
        far = self.shares(other_query, other_key, self.other(other), 1 - joined, pairs)
        weights = ((near + self.gamma * far) / (1 + self.gamma)).repeat_interleave(self.channels, dim=-1)
        sent = gather_rows(value, pairs.sender, sender_order(pairs))
        return pool(weights * sent, pairs.receiver, pairs.rowptr, "sum")

    def shares(self, query: Tensor, key: Tensor, attributes: Tensor, counted: Tensor, pairs: Pairs) -> Tensor:
        """Softmax [P, H] over the pairs that are counted [P, 1], of queries and keys [N, D] and attributes [P, D]."""
        received = spread(query, pairs.receiver, pairs.rowptr)
        products = received * gather_rows(key, pairs.sender, sender_order(pairs)) * attributes
        scores = products.view(-1, self.heads, self.channels).sum(-1) / self.channels**0.5
        powers = scores.clamp(-LARGEST_SCORE, LARGEST_SCORE).exp() * counted
        total = pool(powers, pairs.receiver, pairs.rowptr, "sum")
        return powers / (spread(total, pairs.receiver, pairs.rowptr) + EPSILON)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, gamma={self.gamma}"


def check_san(recipe: SANRecipe) -> None:
    """Refuse what a SAN cannot read."""
    check_stored(recipe.support)
    require(
        recipe.encoding == "spectrum",
        f"model.encoding is {recipe.encoding!r}, but a SAN reads eigenvectors with their eigenvalues: set it to "
        f"'spectrum'.",
    )
    require(
        recipe.edge.kind != "none",
        "model.edge.kind is 'none', but scores of a SAN are products with attributes of edges: set it to 'constant' "
        "where edges have none.",
    )
    check_heads("heads", recipe.heads, recipe.width)
    require(
        recipe.encoding_channels < recipe.width,
        f"model.encoding_channels is {recipe.encoding_channels}, which leaves none of model.width = {recipe.width} to "
        f"the attributes: choose a smaller number.",
    )
