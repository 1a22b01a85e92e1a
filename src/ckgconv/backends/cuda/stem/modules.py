"""The stems of a network in a few launches: `nn.stem` with its own forward and the same parameters."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.backends.cuda.attributes import AnyEdges, Listed, Projected
from ckgconv.backends.cuda.pairs_pass.options import Rows, rows_of
from ckgconv.backends.cuda.stem import launch
from ckgconv.backends.cuda.streams import IN_ORDER, Streams
from ckgconv.backends.cuda.supports import reads_fixed_walks, stem_reason
from ckgconv.graphs import Pairs
from ckgconv.nn.coordinates import NormalisedEncoder
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.stem import Mix, NodeStem, PairStem, on_edges
from ckgconv.ops.lookup import lookup_onto


class FusedNodeStem(NodeStem):
    """`NodeStem` in a few launches where they apply."""

    def forward(
        self,
        attributes: Tensor,
        node_encoding: Tensor,
        node_weight: Tensor | None = None,
        node_filled: Tensor | None = None,
        streams: Streams = IN_ORDER,
    ) -> Tensor:
        """`node_filled` [1]: nodes from there on are padding."""
        if stem_reason(self, self.mix, node_encoding, node_encoding.shape[0]) is not None:
            return super().forward(attributes, node_encoding, node_weight)
        # Weights that only mark padding are not needed: launches stop at the filled rows.
        counted = node_weight if node_filled is None else None
        rows = rows_of(node_encoding, counted, node_filled)
        parts = launch.encoding_parts(node_encoding, self.mix.width, rows)
        norms = (self.encoding_norm, self.norm)
        h, _ = fused_stem(attributes, node_encoding, parts, self.mix, norms, rows, streams)
        return h


class FusedPairStem(PairStem):
    """`PairStem` in a few launches where they apply; edge attributes may come as factors."""

    def forward(
        self, pairs: Pairs, degree: Tensor, edges: AnyEdges | None = None, position: Tensor | None = None
    ) -> Tensor:
        return self.with_moments(pairs, degree, edges, position, IN_ORDER)[0]

    def with_moments(
        self, pairs: Pairs, degree: Tensor, edges: AnyEdges | None, position: Tensor | None, streams: Streams
    ) -> tuple[Tensor, Tensor | None]:
        """e⁰ [R, D], and its moments as a part [3, D] (W, μ, M₂) where they are known without reading it again."""

        def attributes() -> tuple[Tensor, Tensor | None]:
            return self._attributes(pairs, degree, edges, position, streams)

        pairs = self.placed(pairs, position)
        # The fused stem sends no gradient to the coordinates.
        fixed = reads_fixed_walks(self) and not pairs.coordinates.requires_grad
        if fixed and stem_reason(self, self.mix, degree, pairs.coordinates.shape[0]) is None:
            return self._fused(pairs, degree, attributes, streams)
        on_pairs, placed = attributes()
        features = self.mix(on_pairs, self.encoder(pairs, degree))
        if placed is not None:
            features = features + placed
        return self.norm(features, pairs.row_weight), None

    def _fused(
        self, pairs: Pairs, degree: Tensor, attributes: Callable[[], tuple[Tensor, Tensor | None]], streams: Streams
    ) -> tuple[Tensor, Tensor]:
        """Moments of the coordinates do not depend on the attributes: both are computed concurrently."""
        assert isinstance(self.encoder, NormalisedEncoder)
        rows = counted_rows(pairs)
        encoded = self.encoder.scaled(pairs, degree)
        begin = streams.point()
        on_pairs, placed = attributes()
        with streams.side_stream(encoded, since=begin):
            parts = launch.encoding_parts(encoded, self.mix.width, rows)
        on_pairs = on_pairs if placed is None else on_pairs + placed
        streams.join()
        return fused_stem(on_pairs, encoded, parts, self.mix, (self.encoder.norm, self.norm), rows, streams)

    def _attributes(
        self, pairs: Pairs, degree: Tensor, edges: AnyEdges | None, position: Tensor | None, streams: Streams
    ) -> tuple[Tensor, Tensor | None]:
        """Attributes on all pairs [R, D], and what positions add to them; None where the first includes that."""
        rows = pairs.coordinates.shape[0]
        if isinstance(edges, Projected):
            return self._projected(edges, position, pairs), None
        if edges is None:
            attributes = torch.zeros(rows, self.norm.channels, dtype=degree.dtype, device=degree.device)
        elif isinstance(edges, Listed):
            attributes = lookup_onto(edges.types, edges.row, edges.table, rows, streams.side_stream)
        else:
            attributes = on_edges(edges.row, edges.attributes.to(degree.dtype), rows)
        if self.position is None or position is None:
            return attributes, None
        return attributes, self.position(position, pairs)

    def _projected(self, edges: Projected, position: Tensor | None, pairs: Pairs) -> Tensor:
        """Attributes of edges and positions of both ends [R, D] as one product, which writes its rows once."""
        columns, matrices = [on_edges(edges.row, edges.features, pairs.coordinates.shape[0])], [edges.matrix]
        if self.position is not None and position is not None:
            columns += [position[pairs.sender], position[pairs.receiver]]
            matrices += [self.position.sender.weight, self.position.receiver.weight]
        return F.linear(torch.cat(columns, dim=1), torch.cat(matrices, dim=1))


def counted_rows(pairs: Pairs) -> Rows:
    """Which rows of pairs count: launches stop at the filled rows, so weights that only mark padding are not needed."""
    weight = None if pairs.filled is not None and not pairs.has_zero_rows else pairs.row_weight
    return rows_of(pairs.coordinates, weight, pairs.filled)


def fused_stem(
    attributes: Tensor,
    encoded: Tensor,
    parts: Tensor,
    mix: Mix,
    norms: tuple[WeightedBatchNorm, WeightedBatchNorm],
    rows: Rows,
    streams: Streams,
) -> tuple[Tensor, Tensor]:
    """BN( attributes + FC(BN(encoded)) ) and its moments as a part; `parts` are those of the encoding's moments."""
    assert isinstance(mix.projection, torch.nn.Linear)
    first, second = norms
    parameters = launch.Parameters(first.scale, first.shift, mix.projection.weight, second.scale, second.shift)
    settings = launch.settings_of(encoded, norms, streams)
    e, _, _, part = launch.stem(encoded, parts, attributes, parameters, settings, rows)
    return e, part
