"""Stems: attributes and encodings → features of one width (Appendix A).

    node   h⁰ = BN( embed(attributes) + FC(BN(diagonal)) )
    pair   e⁰ = BN( FC(γ BN(|supp(i)| P_ij) + β) + embed(edge attributes on real edges) [+ U pos_j + V pos_i] )

This is the paper's concatenate-then-project written as a sum; with `combine="concatenate"` it is literal:
FC([embed(attributes) ‖ encoding]).

Legend: N nodes, E edges, R rows (P stored pairs, then zero rows), C coordinate channels, K node channels, D width.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.backends.cuda.schedule import beside, now, together
from ckgconv.checks import check_choice, require
from ckgconv.graphs import Pairs
from ckgconv.nn.coordinates import RandomWalkEncoder, check_injection, coordinate_encoder
from ckgconv.nn.encoders import Listed, Projected
from ckgconv.nn.initialise import small_normal
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.dispatch import fits
from ckgconv.ops.lookup import lookup_onto
from ckgconv.pairs import Encoding

Combine = Literal["sum", "concatenate"]
EdgeAttributes = Tensor | Projected | Listed


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

    def forward(
        self,
        attributes: Tensor,
        node_encoding: Tensor,
        node_weight: Tensor | None = None,
        node_filled: Tensor | None = None,
    ) -> Tensor:
        if runs_fused(self, self.mix, node_encoding, node_encoding.shape[0]):
            from ckgconv.backends.cuda.stem import triton as kernels

            parts = kernels.encoding_parts(node_encoding, self.mix.width, None, node_filled)
            norms = (self.encoding_norm, self.norm)
            h, _ = fused_stem(attributes, node_encoding, parts, self.mix, *norms, None, node_filled)
            return h
        return self.norm(self.mix(attributes, self.encoding_norm(node_encoding, node_weight)), node_weight)


class PairStem(nn.Module):
    """Coordinates of pairs and attributes of edges → e⁰ [R, D], shared by the kernels of all layers.

    Args:
        encoding: which coordinates.
        width: D.
        combine: "sum" or "concatenate".
        initial_scale: where γ of the coordinates starts.
        inject_degree: whether degrees are injected into the coordinates (Eq. 8).
        position_channels: coordinates per node of superpixel graphs, 0 for none.
    """

    def __init__(
        self,
        encoding: Encoding,
        width: int,
        combine: Combine = "sum",
        initial_scale: float = 0.1,
        inject_degree: bool = False,
        position_channels: int = 0,
    ) -> None:
        super().__init__()
        require(
            not (position_channels and encoding.support == "sparse_global"),
            "Positions differ on every pair, so no zero row can stand for the pairs of a sparse global support: "
            "choose support 'global' or a number of hops.",
        )
        check_injection(encoding, inject_degree)
        self.encoder = coordinate_encoder(encoding, width, initial_scale, inject_degree)
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
        self,
        pairs: Pairs,
        degree: Tensor,
        edge_row: Tensor | None = None,
        edge_attributes: EdgeAttributes | None = None,
        position: Tensor | None = None,
    ) -> Tensor:
        """edge_row [E] and embedded edge_attributes [E, D] lie on real edges; those of parallel edges add up."""
        return self.with_moments(pairs, degree, edge_row, edge_attributes, position)[0]

    def with_moments(
        self,
        pairs: Pairs,
        degree: Tensor,
        edge_row: Tensor | None,
        edge_attributes: EdgeAttributes | None,
        position: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The same, and its moments as a part [3, D] (W, μ, M₂) where they are known without reading it again."""
        given = partial(self._attributes, pairs, degree, edge_row, edge_attributes, position)
        # No gradient reaches the coordinates in the fused stem, and injected degrees are learned.
        fixed = isinstance(self.encoder, RandomWalkEncoder) and self.encoder.injection is None
        if fixed and runs_fused(self, self.mix, degree, pairs.coordinates.shape[0]):
            return self._fused(pairs, degree, given)
        attributes, placed = given()
        features = self.mix(attributes, self.encoder(pairs, degree))
        if placed is not None:
            features = features + placed
        return self.norm(features, pairs.row_weight), None

    def _fused(
        self, pairs: Pairs, degree: Tensor, given: Callable[[], tuple[Tensor, Tensor | None]]
    ) -> tuple[Tensor, Tensor]:
        """By fused kernels; moments of the coordinates, which need no attributes, beside those."""
        from ckgconv.backends.cuda.stem import triton as kernels

        assert isinstance(self.encoder, RandomWalkEncoder)
        # Padding alone needs no weights: the kernels stop at the filled rows.
        weight = None if pairs.filled is not None and not pairs.has_zero_rows else pairs.row_weight
        encoded = self.encoder.scaled(pairs, degree)
        begin = now()
        attributes, placed = given()
        with beside(encoded, since=begin):
            parts = kernels.encoding_parts(encoded, self.mix.width, weight, pairs.filled)
        attributes = attributes if placed is None else attributes + placed
        together()
        return fused_stem(attributes, encoded, parts, self.mix, self.encoder.norm, self.norm, weight, pairs.filled)

    def _attributes(
        self,
        pairs: Pairs,
        degree: Tensor,
        edge_row: Tensor | None,
        edge_attributes: EdgeAttributes | None,
        position: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Of all pairs [R, D], and what positions add to them unless that is part of it."""
        rows = pairs.coordinates.shape[0]
        if isinstance(edge_attributes, Projected):
            assert edge_row is not None
            return self._projected(edge_row, edge_attributes, position, pairs), None
        if edge_row is None or edge_attributes is None:
            attributes = torch.zeros(rows, self.norm.channels, dtype=degree.dtype, device=degree.device)
        elif isinstance(edge_attributes, Listed):
            attributes = lookup_onto(edge_attributes.types, edge_row, edge_attributes.table, rows)
        else:
            attributes = on_edges(edge_row, edge_attributes.to(degree.dtype), rows)
        if self.position is None or position is None:
            return attributes, None
        return attributes, self.position(position, pairs)

    def _projected(self, edge_row: Tensor, edges: Projected, position: Tensor | None, pairs: Pairs) -> Tensor:
        """Attributes of edges and positions of both ends [R, D] as one product, which writes its rows once."""
        columns, matrices = [on_edges(edge_row, edges.features, pairs.coordinates.shape[0])], [edges.matrix]
        if self.position is not None and position is not None:
            columns += [position[pairs.sender], position[pairs.receiver]]
            matrices += [self.position.sender.weight, self.position.receiver.weight]
        return F.linear(torch.cat(columns, dim=1), torch.cat(matrices, dim=1))


def on_edges(edge_row: Tensor, edge_attributes: Tensor, rows: int) -> Tensor:
    """Attributes [E, D] of edges on their rows [E] of all pairs, zero elsewhere: [R, D]."""
    zeros = edge_attributes.new_zeros(rows, edge_attributes.shape[1])
    return zeros.index_add_(0, edge_row, edge_attributes)


def runs_fused(module: nn.Module, mix: "Mix", x: Tensor, rows: int) -> bool:
    """Whether `fused_stem` applies: in training, a sum of attributes and projection, one process."""
    plain = module.training and mix.combine == "sum" and not several_processes()
    return plain and dispatch.uses_triton(x) and fits(x, rows, max(mix.width, mix.channels))


def fused_stem(
    attributes: Tensor,
    encoded: Tensor,
    parts: Tensor,
    mix: "Mix",
    encoding_norm: WeightedBatchNorm,
    norm: WeightedBatchNorm,
    row_weight: Tensor | None,
    filled: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """BN( attributes + FC(BN(encoded)) ) by fused kernels, and its moments as a part; running statistics follow.

    `parts` are those of the moments of the encoding.
    """
    assert isinstance(mix.projection, nn.Linear)
    from ckgconv.backends.cuda.stem import triton as kernels

    e, _, _, part = kernels.stem(
        encoded,
        parts,
        attributes,
        encoding_norm.scale,
        encoding_norm.shift,
        mix.projection.weight,
        norm.scale,
        norm.shift,
        [encoding_norm.running, norm.running],
        norm.momentum,
        row_weight,
        filled,
        norm.epsilon,
    )
    return e, part


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
        # Positions are gathered before they are projected: they need no gradient, so no sum over pairs comes back.
        return self.sender(position[pairs.sender]) + self.receiver(position[pairs.receiver])


class Mix(nn.Module):
    """a + FC(p), or FC([a ‖ p]): attributes a [R, D] and encoding p [R, C] → [R, D].

    Where the encoding is a learned feature already (`embedded`), the sum needs no projection.
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
            return attributes + self.projection(encoded)
        return self.projection(torch.cat([attributes, encoded], dim=-1))

    def extra_repr(self) -> str:
        return self.combine
