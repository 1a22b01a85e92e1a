"""GRIT: a graph transformer whose attention reads and rewrites a state on every pair of nodes.

    h⁰ = node attributes + W_node [1, M_ii, M²_ii, …]              e⁰ = W_pair P_ij + edge attributes
    y, ê = attention l (h, e)                                       see `attention`
    h ← BN(h + O (y ⊙ θ₁ + log(1 + d) y ⊙ θ₂))                      h ← BN(h + FFN(h))
    e ← BN(e + O_e ê)                                               l = 1 … L
    ŷ  = head(pool(hᴸ))

No norm in the stem and no rescaling of P, unlike CKGCN. RRWP is the published encoding; every other pseudo-coordinate
and every support that stores its pairs work too.

Legend: G graphs, N nodes, P pairs, D width, L blocks, T outputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_probability, require
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.attention import PairAttention
from ckgconv.nn.coordinates import coordinate_encoder
from ckgconv.nn.degree import DegreeScaler
from ckgconv.nn.drop_path import DropPath, drop_probability, on_path
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.head import make_relu_head
from ckgconv.nn.linear import Linear
from ckgconv.nn.node_input import node_channels, node_input
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.sinusoids import check_frequencies, with_frequencies, with_sinusoids
from ckgconv.ops.dropout import dropout
from ckgconv.ops.precision import without_autocast
from ckgconv.pairs import Encoding
from ckgconv.recipe import GRITRecipe


class GRIT(GraphModel):
    """The graph transformer that a recipe describes.

    Args:
        recipe: encoders, width, heads, dropouts, support and head.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.

    Example:
        >>> model = GRIT.from_recipe("zinc-grit")
        >>> sum(parameter.numel() for parameter in model.parameters())
        473473
    """

    Recipe = GRITRecipe
    recipe: GRITRecipe
    blocks: Sequence["GRITBlock"]

    def __init__(self, recipe: GRITRecipe) -> None:
        super().__init__(recipe)
        require(
            recipe.support != "sparse_global",
            "GRIT keeps a state on every pair, so no zero row can stand for the pairs of a sparse global support: "
            "choose support 'global' or a number of hops.",
        )
        self.node_position = Linear(self._node_channels, recipe.width, bias=False)
        self.pair_position = CoordinateProjection(self.encoding, recipe.width, recipe.coordinate_features)
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            GRITBlock(recipe, layer) for layer in range(recipe.blocks)
        )
        self.head = make_relu_head(recipe.head, self.head_width)
        nn.init.xavier_uniform_(self.node_position.weight)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        h, e = self.stem(batch)
        for block in self.blocks:
            h, e = block(h, e, batch)
        return h

    def stem(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """h⁰ [N, D] and e⁰ [P, D]."""
        with without_autocast(batch.degree):
            h = self.node_encoder(batch.node_features, batch.node_features.shape[0])
            h = h + self.node_position(self._node_part(node_input(batch, self.recipe.size_features)))
            e = self.pair_position(batch.pairs)
            if self.edge_encoder is not None:
                edges = self.edge_encoder(batch.edge_features, batch.edge_row.shape[0])
                e = e.index_add(0, batch.edge_row, edges)
        return h, e

    @property
    def _node_channels(self) -> int:
        channels = node_channels(self.encoding.node_channels, self.recipe.size_features)
        return channels + int(self.encoding.coordinate.walk_powers)

    def _node_part(self, node_encoding: Tensor) -> Tensor:
        """The return probabilities of a walk of no step, 1, are the first channel of the published model."""
        return F.pad(node_encoding, (1, 0), value=1.0) if self.encoding.coordinate.walk_powers else node_encoding


class CoordinateProjection(nn.Module):
    """Pseudo-coordinates → [P, D], without norm or bias; distances by the learned encoders of `coordinates`."""

    def __init__(self, encoding: Encoding, width: int, frequencies: int = 0) -> None:
        super().__init__()
        check_frequencies(encoding, frequencies)
        self.frequencies = frequencies
        embeds = encoding.coordinate.reading in ("table", "gaussian")
        self.encoder = coordinate_encoder(encoding, width, 1.0, False) if embeds else None
        channels = with_frequencies(encoding.channels, frequencies)
        self.projection = None if embeds else Linear(channels, width, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.encoder is not None:
            self.encoder.reset_parameters()
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection.weight)

    def forward(self, pairs: Pairs) -> Tensor:
        if self.encoder is not None:
            return self.encoder(pairs, pairs.support_size)
        assert self.projection is not None
        return self.projection(with_sinusoids(pairs.coordinates, pairs.coordinates, self.frequencies))


class GRITBlock(nn.Module):
    """One block: attention, feed-forward network and the state of the pairs, each with residual sum and norm.

    DropPath acts on the first two, the branches of the nodes; the state of the pairs is always rewritten.

    Shapes: h [N, D], e [P, D] → h [N, D], e [P, D].
    """

    def __init__(self, recipe: GRITRecipe, layer: int = 0) -> None:
        super().__init__()
        width = recipe.width
        check_probability("dropout", recipe.dropout)
        self.dropout = recipe.dropout
        self.drop_path = DropPath(drop_probability(recipe.drop_path, layer, recipe.blocks))
        self.attention = PairAttention(width, recipe.heads, recipe.clamp, recipe.attention_dropout)
        self.degree_scaler = LogDegreeScaler(width)
        self.projection = Linear(width, width)
        self.attention_norm = WeightedBatchNorm(width)
        self.ffn_in = Linear(width, 2 * width)
        self.ffn_out = Linear(2 * width, width)
        self.ffn_norm = WeightedBatchNorm(width)
        self.pair_projection = Linear(width, width)
        self.pair_norm = WeightedBatchNorm(width)

    def forward(self, h: Tensor, e: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        y, state = self.attention(h, e, batch.pairs)
        h = self.node_states(h, y, batch)
        # Also after the last attention, whose pair state nobody reads: the published running statistics move there too.
        e = self.pair_norm(e + self.pair_projection(self._drop(state)), batch.pairs.row_weight)
        return h, e if batch.pairs.row_weight is None else e * batch.pairs.row_weight.unsqueeze(-1)

    def node_states(self, h: Tensor, y: Tensor, batch: GraphBatch) -> Tensor:
        """h [N, D] after the block, from h before it and what the attention returned, y [N, D]."""
        path = self.drop_path(batch)
        y = self.projection(self.degree_scaler(self._drop(y), batch.degree))
        h = self.attention_norm(h + on_path(y, path), batch.node_weight)
        hidden = self._drop(torch.relu(self.ffn_in(h)))
        h = self.ffn_norm(h + on_path(self.ffn_out(hidden), path), batch.node_weight)
        # Norms ignore padding, so it could grow from block to block until 0 · ∞ is NaN.
        return h if batch.node_weight is None else h * batch.node_weight.unsqueeze(-1)

    def reset_parameters(self) -> None:
        for module in self.children():
            module.reset_parameters()  # type: ignore[operator]

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


class LogDegreeScaler(DegreeScaler):
    """y ⊙ θ₁ + log(1 + d) y ⊙ θ₂: y [N, D], degree [N] → [N, D]."""

    def forward(self, y: Tensor, degree: Tensor) -> Tensor:
        return y * self.theta1 + torch.log1p(degree).unsqueeze(-1) * y * self.theta2
