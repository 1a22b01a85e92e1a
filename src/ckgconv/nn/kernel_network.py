"""Networks of CKGConv blocks: stems, kernels of all blocks, blocks (Section 3.2).

    h⁰ = node stem(attributes, node part of the encoding)
    e⁰ = pair stem(P, edge attributes)
    ψˡ = kernel l (e⁰)                     of all blocks at once, since no pair has a state
    hˡ = block l (hˡ⁻¹, ψˡ),  l = 1 … L

Legend: N nodes, R rows of pairs, L blocks, D width.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from torch import Tensor

from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.graph_model import GraphModel, count_parameters
from ckgconv.nn.kernel import Kernel, KernelValues
from ckgconv.nn.node_input import node_channels, node_input
from ckgconv.nn.relative_position import relative_channels
from ckgconv.nn.sinusoids import with_frequencies
from ckgconv.nn.stem import Edges, NodeStem, PairStem
from ckgconv.nn.step_memory import row_size
from ckgconv.ops.precision import without_autocast
from ckgconv.recipe import KernelNetworkRecipe, KernelRecipe


class Kernels(Protocol):
    """The kernels of all blocks, from pair features [R, D]."""

    def __call__(self, pair_features: Tensor, pairs: Pairs) -> Iterable[KernelValues]: ...

    def of_layer(self, pair_features: Tensor, pairs: Pairs, layer: int) -> KernelValues:
        """ψ of one layer."""
        ...

    def values_per_row(self) -> int:
        """κ of `step_memory`."""
        ...


class KernelNetwork(GraphModel):
    """Base of networks that evaluate kernels on the pairs and blocks on the nodes.

    A network adds `kernel`, `blocks` and `head`.
    """

    recipe: KernelNetworkRecipe
    kernel: Kernels
    blocks: Sequence[CKGConvBlock]

    def __init__(self, recipe: KernelNetworkRecipe) -> None:
        super().__init__(recipe)
        channels = node_channels(self.encoding.node_channels, recipe.size_features)
        self.node_stem = NodeStem(channels, recipe.width, recipe.combine)
        self.pair_stem = PairStem(
            self.encoding,
            recipe.width,
            recipe.combine,
            initial_scale=recipe.coordinate_scale,
            inject_degree=recipe.degree_scaler == "coordinates",
            position_channels=recipe.position_channels,
            frequencies=recipe.coordinate_features,
            relative_positions=recipe.relative_positions,
        )

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        pairs = batch.pairs
        e, h = self._pair_features(batch), self.input_states(batch)
        for block, psi in zip(self.blocks, self.kernel(e, pairs), strict=True):
            h = block(h, psi, pairs, batch.degree, batch.node_weight, block.drop_path(batch))
        return h

    @property
    def depth(self) -> int:
        return len(self.blocks)

    def input_states(self, batch: GraphBatch) -> Tensor:
        """h⁰ [N, D]."""
        with without_autocast(batch.degree):
            attributes = self.node_encoder(batch.node_features, batch.node_features.shape[0])
            return self.node_stem(attributes, self._node_encoding(batch), batch.node_weight)

    def layer_states(self, layer: int, states: Tensor, batch: GraphBatch) -> Tensor:
        """hˡ [N, D] from hˡ⁻¹ [N, D]; `layer` counts from 0."""
        psi = self.kernel.of_layer(self._pair_features(batch), batch.pairs, layer)
        block = self.blocks[layer]
        return block(states, psi, batch.pairs, batch.degree, batch.node_weight, block.drop_path(batch))

    def _node_encoding(self, batch: GraphBatch) -> Tensor:
        return node_input(batch, self.recipe.size_features)

    def _pair_features(self, batch: GraphBatch) -> Tensor:
        """e⁰ [R, D]."""
        with without_autocast(batch.degree):
            return self.pair_stem(batch.pairs, batch.degree, self._edges(batch), batch.position)

    def _edges(self, batch: GraphBatch) -> Edges | None:
        """Embedded attributes [E, D] and their rows; None where edges have none."""
        if self.edge_encoder is None:
            return None
        return Edges(batch.edge_row, self.edge_encoder(batch.edge_features, batch.edge_row.shape[0]))

    def step_bytes(self, rows: int) -> int:
        recipe = self.recipe
        added = relative_channels(recipe.position_channels, recipe.relative_positions)
        channels = with_frequencies(self.encoding.channels + added, recipe.coordinate_features)
        values = row_size(self.kernel.values_per_row(), recipe.width, channels)
        return values.step_bytes(rows, count_parameters([self]), self.dtype)

    def parameters_by_component(self) -> dict[str, int]:
        """Trainable parameters of each part."""
        blocks = list(self.blocks)
        components: dict[str, list[Any]] = {
            "node_encoder": [self.node_encoder],
            "edge_encoder": [self.edge_encoder],
            "node_stem": [self.node_stem],
            "pair_stem": [self.pair_stem],
            "kernels": [self.kernel],
            "degree_scalers": [block.convolution.degree_scaler for block in blocks],
            "output_projections": [block.convolution.projection for block in blocks],
            "ffn": [module for block in blocks for module in (block.ffn_in, block.ffn_out)],
            "block_norms": [module for block in blocks for module in (block.convolution_norm, block.ffn_norm)],
            "head": [self.head],
        }
        return {name: count_parameters(parts) for name, parts in components.items()}


def make_kernel(recipe: KernelRecipe, width: int, channels: int, layers: int) -> Kernel:
    """The kernels of that many layers, from pair features [R, width] to values [R, channels]."""
    return Kernel(
        width,
        channels,
        layers=layers,
        blocks=recipe.blocks,
        norm=recipe.norm,
        mlp_dropout=recipe.mlp_dropout,
        kernel_dropout=recipe.dropout,
        constraint=recipe.constraint,
    )
