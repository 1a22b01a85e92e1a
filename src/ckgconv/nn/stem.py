"""Stems: attributes and encodings → features of one width (Appendix A).

    node   h⁰ = BN( embed(attributes) + FC(BN(diagonal)) )
    pair   e⁰ = BN( FC(γ BN(|supp(i)| P_ij) + β) + embed(edge attributes on real edges) [+ U pos_j + V pos_i] )

This is the paper's concatenate-then-project written as a sum; with `combine="concatenate"` it is literal:
FC([embed(attributes) ‖ encoding]). The equation of pairs is that of the reading "normalised" with rescaled values;
`nn.coordinates` has the other readings.

The norms of return probabilities, and those over pairs, are `skewed`: most rows are near zero and few are large, so
their statistics need pairwise sums (`nn.norm`). A zero row stands for all pairs of a graph that are not stored
(`graphs.Pairs`).

Legend: N nodes, E edges, R rows (P stored pairs, then zero rows), C coordinate channels, K node channels, D width.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ckgconv.checks import check_choice, require
from ckgconv.graphs import Pairs
from ckgconv.nn.coordinates import check_injection, coordinate_encoder
from ckgconv.nn.hooks import has_hooks
from ckgconv.nn.initialise import small_normal
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.relative_position import check_relative_positions, relative_channels, with_relative_positions
from ckgconv.pairs import Encoding

Combine = Literal["sum", "concatenate"]


class Edges(NamedTuple):
    """Embedded attributes of edges, and the rows of pairs on which they lie; those of parallel edges add up."""

    row: Tensor  # [E]
    attributes: Tensor  # [E, D]


class NodeStem(nn.Module):
    """Attributes [N, D] and return probabilities [N, K] → h⁰ [N, D]."""

    def __init__(self, channels: int, width: int, combine: Combine = "sum") -> None:
        super().__init__()
        self.encoding_norm = WeightedBatchNorm(channels, skewed=True)
        self.mix = Mix(width, channels, combine)
        self.norm = WeightedBatchNorm(width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.encoding_norm.reset_parameters()
        self.mix.reset_parameters(small_normal)
        self.norm.reset_parameters()

    def forward(self, attributes: Tensor, node_encoding: Tensor, node_weight: Tensor | None = None) -> Tensor:
        return self.norm(self.mix(attributes, self.encoding_norm(node_encoding, node_weight)), node_weight)


class PairStem(nn.Module):
    """Coordinates of pairs and attributes of edges → e⁰ [R, D], shared by the kernels of all layers.

    Args:
        encoding: which coordinates.
        width: D.
        combine: "sum" or "concatenate".
        initial_scale: initial value of γ of the coordinates.
        inject_degree: whether degrees are injected into the coordinates (Eq. 8).
        position_channels: coordinates per node of superpixel graphs, 0 for none.
        frequencies: of sinusoidal features of the coordinates, 0 for none.
        relative_positions: whether coordinates include the positions of both ends relative to each other.

    Shapes: `Pairs`, degree [N], `Edges` or None, positions [N, 2] or None → [R, D].
    """

    def __init__(
        self,
        encoding: Encoding,
        width: int,
        combine: Combine = "sum",
        initial_scale: float = 0.1,
        inject_degree: bool = False,
        position_channels: int = 0,
        frequencies: int = 0,
        relative_positions: bool = False,
    ) -> None:
        super().__init__()
        require(
            not (position_channels and encoding.support == "sparse_global"),
            "Positions differ on every pair, so no zero row can stand for the pairs of a sparse global support: "
            "choose support 'global' or a number of hops.",
        )
        check_injection(encoding, inject_degree)
        if relative_positions:
            check_relative_positions(encoding, position_channels, inject_degree)
        self.relative_positions = relative_positions
        added = relative_channels(position_channels, relative_positions)
        self.encoder = coordinate_encoder(encoding, width, initial_scale, inject_degree, frequencies, added)
        self.mix = Mix(width, self.encoder.channels, combine, self.encoder.embeds)
        self.position = PairPosition(position_channels, width) if position_channels else None
        self.norm = WeightedBatchNorm(width, skewed=True)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.encoder.reset_parameters()
        self.mix.reset_parameters(nn.init.xavier_normal_)
        if self.position is not None:
            self.position.reset_parameters()
        self.norm.reset_parameters()

    def forward(
        self, pairs: Pairs, degree: Tensor, edges: Edges | None = None, position: Tensor | None = None
    ) -> Tensor:
        encoded = self.encoder(self.placed(pairs, position), degree)
        if self.mix.combine == "sum":
            project = self.mix.projected if pairs.row_weight is None else self.mix.projected_quickly
            projected = project(encoded)
            features = _plus_edges(projected.to(torch.promote_types(projected.dtype, degree.dtype)), edges)
        elif edges is None:
            features = self.mix(encoded.new_zeros(len(encoded), self.norm.channels, dtype=degree.dtype), encoded)
        else:
            features = self.mix(on_edges(edges.row, edges.attributes.to(degree.dtype), len(encoded)), encoded)
        if self.position is not None and position is not None:
            features = features + self.position(position, pairs)
        return self.norm(features, pairs.row_weight)

    def placed(self, pairs: Pairs, position: Tensor | None) -> Pairs:
        """The pairs as the encoder reads them."""
        return with_relative_positions(pairs, position) if self.relative_positions and position is not None else pairs


def _plus_edges(features: Tensor, edges: Edges | None) -> Tensor:
    """Features [R, D], plus attributes on the rows of edges; most rows have no edge."""
    return features if edges is None else features.index_add(0, edges.row, edges.attributes.to(features.dtype))


def on_edges(edge_row: Tensor, edge_attributes: Tensor, rows: int) -> Tensor:
    """Attributes [E, D] of edges on their rows [E] of all pairs, zero elsewhere: [R, D]."""
    zeros = edge_attributes.new_zeros(rows, edge_attributes.shape[1])
    return zeros.index_add_(0, edge_row, edge_attributes)


class PairPosition(nn.Module):
    """U pos_j + V pos_i on every pair: positions [N, 2] → [P, D]."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.sender = nn.Linear(channels, width, bias=False)
        self.receiver = nn.Linear(channels, width, bias=False)

    def reset_parameters(self) -> None:
        nn.init.xavier_normal_(self.sender.weight)
        nn.init.xavier_normal_(self.receiver.weight)

    def forward(self, position: Tensor, pairs: Pairs) -> Tensor:
        # Gathered before the projection: positions need no gradient, so the backward pass has no sum over pairs.
        return self.sender(position[pairs.sender]) + self.receiver(position[pairs.receiver])


class Mix(nn.Module):
    """a + FC(p), or FC([a ‖ p]): attributes a [R, D] and encoding p [R, C] → [R, D].

    Where the encoding is already a learned feature (`embedded`), the sum needs no projection.
    """

    def __init__(self, width: int, channels: int, combine: Combine, embedded: bool = False) -> None:
        super().__init__()
        check_choice("combine", combine, get_args(Combine))
        self.combine = combine
        self.width, self.channels = width, channels
        inputs = channels if combine == "sum" else width + channels
        skips = embedded and combine == "sum"
        self.projection = nn.Identity() if skips else nn.Linear(inputs, width, bias=False)

    def reset_parameters(self, initial: Callable[[Tensor], object]) -> None:
        if isinstance(self.projection, nn.Linear):
            initial(self.projection.weight)

    def forward(self, attributes: Tensor, encoded: Tensor) -> Tensor:
        if self.combine == "sum":
            return attributes + self.projected(encoded)
        return self.projected(torch.cat([attributes, encoded], dim=-1))

    def projected(self, values: Tensor) -> Tensor:
        """In the dtype of the parameters: values of 16-bit models come in float32."""
        if not isinstance(self.projection, nn.Linear):
            return values
        return self.projection(values.to(self.projection.weight.dtype))

    def projected_quickly(self, values: Tensor) -> Tensor:
        """The same with a contiguous Wᵀ: with nine channels on one side the backward pass takes a third of the time.

        It sums over rows in another order.
        """
        if type(self.projection) is not nn.Linear or has_hooks(self.projection):
            return self.projected(values)
        weight = self.projection.weight
        return values.to(weight.dtype) @ weight.T.contiguous()

    def extra_repr(self) -> str:
        return self.combine
