"""CKGCN by fused passes: `nn.ckgcn` with its own launches and the same parameters.

    main stream    pair stem ─ pairs pass (ψ of all layers) ─┬─ node pass (all blocks) ─ head
    side streams   seeds, moments, node stem ────────────────┘  the next batch

The plain module is the specification; what no fused pass computes for a recipe or a batch runs as that module does.

Legend: L blocks, N nodes, P pairs, D width.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.backends.cuda.attributes import AnyEdges, embedded, factored
from ckgconv.backends.cuda.kernel import FusedKernel, only_real
from ckgconv.backends.cuda.lists import sorted_by_sender
from ckgconv.backends.cuda.node_pass import launch
from ckgconv.backends.cuda.node_pass.options import Block, Dropout, Lists
from ckgconv.backends.cuda.stem.modules import FusedNodeStem, FusedPairStem
from ckgconv.backends.cuda.streams import IN_ORDER, StreamedModel, Streams
from ckgconv.backends.cuda.supports import blocks_reason
from ckgconv.graphs import GraphBatch, LayeredBatch, OpaqueBatch, Pairs
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.ckgcn import CKGCN
from ckgconv.nn.convolution import sender_lists
from ckgconv.nn.drop_path import all_paths
from ckgconv.nn.kernel import GivenKernels
from ckgconv.ops import dispatch
from ckgconv.ops.launch import draw_seeds
from ckgconv.ops.precision import without_autocast


class FusedCKGCN(StreamedModel, CKGCN):
    """`CKGCN` on a CUDA GPU; `backends.accelerate` swaps its submodules for fused ones too."""

    kernel: FusedKernel | GivenKernels
    node_stem: FusedNodeStem
    pair_stem: FusedPairStem

    def forward(self, data: Data | GraphBatch | LayeredBatch | OpaqueBatch, streams: Streams = IN_ORDER) -> Tensor:
        if isinstance(data, LayeredBatch | OpaqueBatch):
            return super().forward(data)
        batch = data if isinstance(data, GraphBatch) else self.prepare_step(data)
        return self.read_out(self.embed(batch, streams))

    def layer_states(self, layer: int, states: Tensor, batch: GraphBatch) -> Tensor:
        return super().layer_states(layer, states, replace(batch, pairs=sorted_by_sender(batch.pairs)))

    def embed(self, batch: GraphBatch, streams: Streams = IN_ORDER) -> Tensor:
        return self.pooled(self.node_states(batch, streams), batch)

    def node_states(self, batch: GraphBatch, streams: Streams = IN_ORDER) -> Tensor:
        """hᴸ [N, D], by the streams of the figure above."""
        if not dispatch.uses_triton(batch.degree):
            return super().node_states(batch)
        with without_autocast(batch.degree):
            begin = streams.point()
            with streams.side_stream():
                seeds = draw_seeds(batch.degree.device, 2) if self.training else None
            edges = self._edge_factors(batch, streams)
            e, part = self.pair_stem.with_moments(batch.pairs, batch.degree, edges, batch.position, streams)
            if part is None:
                streams.join()  # for the seeds; a fused stem has already joined
            # Concurrent with all of the above and with the pairs pass; joined where the blocks start.
            with streams.side_stream(since=begin):
                h = self._node_features(batch, streams)
        return self._run_blocks(h, e, part, seeds, batch, streams)

    def _node_features(self, batch: GraphBatch, streams: Streams) -> Tensor:
        """h⁰ [N, D]."""
        attributes = embedded(self.node_encoder, batch.node_features, streams)
        return self.node_stem(attributes, self._node_encoding(batch), batch.node_weight, batch.node_filled, streams)

    def _edge_factors(self, batch: GraphBatch, streams: Streams) -> AnyEdges | None:
        """Embedded attributes of edges; their factors where the scatter onto pairs may precede the projection."""
        if self.edge_encoder is None or self.recipe.combine != "sum":
            return self._edges(batch)
        return factored(self.edge_encoder, batch.edge_features, batch.edge_row, streams)

    def _run_blocks(
        self,
        h: Tensor,
        e: Tensor,
        part: Tensor | None,
        seeds: Tensor | None,
        batch: GraphBatch,
        streams: Streams,
    ) -> Tensor:
        """h⁰ [N, D], which may still be computed on a side stream, and pair features [R, D] → hᴸ [N, D].

        Args:
            part: [3, D], the moments (W, μ, M₂) of the pair features, where they are known.
            seeds: [2, 1], of the masks of kernels and nodes, in training.
        """
        if blocks_reason(self.blocks, h, batch.pairs, batch.degree) is not None:
            streams.join()
            streams.start_prefetch()
            return self._block_after_block(h, e, batch)
        kernel_seed, node_seed = (None, None) if seeds is None else seeds
        if self.blocks[0].training and node_seed is None:  # blocks train although the network is in eval mode
            node_seed = draw_seeds(h.device, 1)[0]
        dropout = None if node_seed is None else self._dropout(node_seed, batch, streams)
        psi = self._stacked_kernels(e, batch.pairs, part, kernel_seed, streams)
        streams.join()
        streams.start_prefetch()
        return fused_blocks(self.blocks, h, psi, batch, dropout if self.blocks[0].training else None, streams)

    def _dropout(self, seed: Tensor, batch: GraphBatch, streams: Streams) -> Dropout:
        """Of the node pass; the blocks that are dropped are drawn concurrently with the pairs pass."""
        drop_paths, probability = [block.drop_path for block in self.blocks], self.blocks[0].dropout
        if not any(each.drops for each in drop_paths):
            return Dropout(seed, probability)
        with streams.side_stream():
            return Dropout(seed, probability, all_paths(drop_paths, batch))

    def _block_after_block(self, h: Tensor, e: Tensor, batch: GraphBatch) -> Tensor:
        # Sorted once for all blocks, whose convolutions sum over both orders.
        pairs = sorted_by_sender(batch.pairs)
        for block, psi in zip(self.blocks, self.kernel(e, pairs), strict=True):
            h = block(h, psi, pairs, batch.degree, batch.node_weight, block.drop_path(batch))
        return h

    def _stacked_kernels(
        self, e: Tensor, pairs: Pairs, part: Tensor | None, seed: Tensor | None, streams: Streams
    ) -> Tensor:
        """ψ [L, P, D] of all layers."""
        kernel = self.kernel
        stacked = None
        if isinstance(kernel, FusedKernel):
            stacked = kernel.constrained_layers(e, pairs, part, seed, streams)
        if stacked is None:
            stacked = only_real(torch.stack([psi.stored for psi in kernel(e, pairs)]), pairs)
        return stacked


def fused_blocks(
    blocks: Sequence[CKGConvBlock],
    h: Tensor,
    psi: Tensor,
    batch: GraphBatch,
    dropout: Dropout | None,
    streams: Streams = IN_ORDER,
) -> Tensor:
    """hᴸ [N, D] by the node pass; `dropout` in training, None in evaluation."""
    norms: list[Any] = [norm for block in blocks for norm in (block.convolution_norm, block.ffn_norm)]
    settings = launch.settings_of(h, [norm.running for norm in norms], norms[0], streams)
    lists, fields = support_lists(batch), [block_fields(block, h) for block in blocks]
    if dropout is None:
        return launch.evaluated_node_pass(h, psi, lists, fields, settings, batch.node_filled)
    h, _ = launch.node_pass(h, psi, lists, fields, settings, batch.node_filled, dropout)
    return h


def block_fields(block: CKGConvBlock, h: Tensor) -> Block:
    """Parameters of a block; without a degree scaler θ₁ = 1 and θ₂ = 0."""
    convolution, scaler = block.convolution, block.convolution.degree_scaler
    first: Any = block.convolution_norm
    second: Any = block.ffn_norm
    return Block(
        theta1=h.new_ones(h.shape[1]) if scaler is None else scaler.theta1,
        theta2=h.new_zeros(h.shape[1]) if scaler is None else scaler.theta2, weight=convolution.projection.weight,
        bias=convolution.projection.bias, scale=first.scale, shift=first.shift, weight_in=block.ffn_in.weight,
        bias_in=block.ffn_in.bias, weight_out=block.ffn_out.weight, bias_out=block.ffn_out.bias,
        scale_out=second.scale, shift_out=second.shift,
    )  # fmt: skip


def support_lists(batch: GraphBatch) -> Lists:
    """The support by receivers and by senders; sorted here unless the batch includes the order by senders."""
    pairs = sorted_by_sender(batch.pairs)
    lists = sender_lists(pairs)
    assert lists is not None
    return Lists(pairs.rowptr, pairs.sender, *lists, pairs.support_size.float(), batch.degree.float())
