"""Graphormer: attention over all nodes whose scores know how far apart they are, and nodes that know their degree.

    h⁰_i = node attributes + T_degree[d_i]
    b_ij = T_distance[SPD_ij] + edge attributes, one number per head, the same in all blocks
    h ← h + drop(A(LN(h), b)),  A of head H: Σ_j softmax_j(Q h_i · K h_j / √d + b_ij) V h_j       see `node_attention`
    h ← h + drop(W₂ GELU(W₁ LN(h)))                                                               hidden layer of D
    ŷ = head(pool(LN(h)))

Two things differ from the publication. It pools graphs by a virtual node; here the recipe chooses the pooling. It
averages edge attributes along the shortest path of every pair; here they are added to the pairs that an edge joins. The
published distance is that of the shortest path; any other pseudo-coordinate and any support that stores its pairs work
too.

Legend: G graphs, N nodes, P pairs, D width, H heads of d = D/H channels, T outputs.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_probability
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.encoders import attribute_encoder
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.grit import CoordinateProjection
from ckgconv.nn.head import make_head
from ckgconv.nn.initialise import small_normal
from ckgconv.nn.node_attention import NodeAttention, check_stored
from ckgconv.nn.norm import GroupedLayerNorm
from ckgconv.ops.dropout import dropout
from ckgconv.recipe import GraphormerRecipe

# Nodes of this degree and of higher ones share a vector.
HIGHEST_DEGREE = 64


class Graphormer(GraphModel):
    """The graph transformer that a recipe describes.

    Args:
        recipe: encoders, width, heads, dropouts, support and head.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.
    """

    Recipe = GraphormerRecipe
    recipe: GraphormerRecipe
    blocks: Sequence["GraphormerBlock"]

    def __init__(self, recipe: GraphormerRecipe) -> None:
        super().__init__(recipe)
        check_stored(recipe.support)
        self.edge_encoder = attribute_encoder(recipe.edge, recipe.heads)
        self.degree = nn.Embedding(HIGHEST_DEGREE + 1, recipe.width)
        self.distance = CoordinateProjection(self.encoding, recipe.heads)
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            GraphormerBlock(recipe) for _ in range(recipe.blocks)
        )
        self.norm = GroupedLayerNorm(recipe.width)
        self.head = make_head(recipe.head, self.head_width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights and tables N(0, 0.02²), biases 0, as published; norms the identity."""
        super().reset_parameters()
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                small_normal(module.weight)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """LN(hᴸ) [N, D]."""
        h = self.node_encoder(batch.node_features, batch.node_features.shape[0])
        h = h + self.degree(batch.degree.long().clamp(max=HIGHEST_DEGREE))
        bias = self.distance(batch.pairs)
        if self.edge_encoder is not None:
            edges = self.edge_encoder(batch.edge_features, batch.edge_row.shape[0])
            bias = bias.index_add(0, batch.edge_row, edges.to(bias.dtype))
        for block in self.blocks:
            h = block(h, bias, batch.pairs)
        return self.norm(h)


class GraphormerBlock(nn.Module):
    """Attention and feed-forward network, each behind its norm: h [N, D], b [P, H], `Pairs` → h [N, D]."""

    def __init__(self, recipe: GraphormerRecipe) -> None:
        super().__init__()
        width = recipe.width
        check_probability("dropout", recipe.dropout)
        self.dropout = recipe.dropout
        self.attention_norm = GroupedLayerNorm(width)
        self.attention = NodeAttention(width, recipe.heads, recipe.attention_dropout, "heads")
        self.ffn_norm = GroupedLayerNorm(width)
        self.ffn_in = nn.Linear(width, width)
        self.ffn_out = nn.Linear(width, width)

    def forward(self, h: Tensor, bias: Tensor, pairs: Pairs) -> Tensor:
        h = h + self._drop(self.attention(self.attention_norm(h), pairs, bias))
        return h + self._drop(self.ffn_out(F.gelu(self.ffn_in(self.ffn_norm(h)))))

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"
