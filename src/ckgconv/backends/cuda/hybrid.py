"""The hybrid on a CUDA GPU: kernels and stems by fused passes, blocks in float32.

Node features are a hundredth of the data, so autocast would save nothing there, and every cast is a launch. Attention
over all pairs of a graph is one launch; other sums over the support are computed by the plain module. The rest of a
block runs as launches of the node pass.

Legend: N nodes, D width.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass.attention import Graphs, graph_attention
from ckgconv.backends.cuda.ckgcn import block_fields
from ckgconv.backends.cuda.lists import filled_nodes, sorted_by_sender
from ckgconv.backends.cuda.node_pass import launch
from ckgconv.backends.cuda.node_pass.options import Block, Dropout
from ckgconv.backends.cuda.node_pass.tail import Nodes, block_tail
from ckgconv.backends.cuda.streams import IN_ORDER
from ckgconv.backends.cuda.supports import attends_by_graphs, tail_reason
from ckgconv.graphs import GraphBatch
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.convolution import convolve
from ckgconv.nn.dynamic import AttentionConvolution, AttentionHeads, ParallelConvolution
from ckgconv.nn.hybrid import Hybrid
from ckgconv.nn.kernel import KernelValues
from ckgconv.ops import dispatch
from ckgconv.ops.launch import draw_seeds
from ckgconv.ops.linear import linear
from ckgconv.ops.precision import without_autocast


class FusedHybrid(Hybrid):
    """`Hybrid` whose blocks stay float32 under autocast, while kernels are stored in 16 bits."""

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        if not dispatch.uses_triton(batch.degree) or self.dtype != torch.float32:
            return super().node_states(batch)
        # Sorted once for all blocks, whose convolutions sum over both orders.
        pairs = sorted_by_sender(batch.pairs)
        batch = replace(batch, pairs=pairs)
        kernels = tuple(self.kernel(self._pair_features(batch), pairs))
        h = self.input_states(batch)
        with without_autocast(h):
            if tail_reason(self.blocks, h, batch) is None:
                return fused_blocks(self.blocks, h, kernels, batch, attends_by_graphs(self.recipe.support, batch))
            for block, psi in zip(self.blocks, kernels, strict=True):
                h = block(h, psi, pairs, batch.degree, batch.node_weight, block.drop_path(batch))
        return h


def fused_blocks(
    blocks: Sequence[CKGConvBlock], h: Tensor, kernels: Sequence[KernelValues], batch: GraphBatch, by_graphs: bool
) -> Tensor:
    """hᴸ [N, D]: the sums of each block, then its tail; `by_graphs`: attention runs graph by graph."""
    nodes = Nodes(batch.degree.float(), torch.ones_like(batch.degree), filled_nodes(batch))
    seeds = draw_seeds(h.device, len(blocks))
    for block, psi, seed in zip(blocks, kernels, seeds, strict=True):
        first: Any = block.convolution_norm
        second: Any = block.ffn_norm
        settings = launch.settings_of(h, [first.running, second.running], first, IN_ORDER)
        path = block.drop_path(batch)
        dropout = Dropout(seed, block.dropout, None if path is None else path.squeeze(-1).unsqueeze(0))
        x, y, fields = sums_of(block, h, psi, batch, seed, by_graphs)
        h = block_tail(x, y, fields, nodes, settings, dropout)
    return h


def sums_of(
    block: CKGConvBlock, h: Tensor, psi: KernelValues, batch: GraphBatch, seed: Tensor, by_graphs: bool
) -> tuple[Tensor, Tensor, Block]:
    """What the residual sum of a block begins with and its sums over the support, both [N, D], and its fields."""
    convolution, fields = block.convolution, block_fields(block, h)
    if isinstance(convolution, ParallelConvolution):
        return _side_by_side(convolution, h, psi, batch, fields, seed if by_graphs else None)
    if by_graphs and isinstance(convolution, AttentionConvolution):
        return h, attended(convolution.channels, h, psi.stored, batch, seed), fields
    return h, convolution.summed(h, psi, batch.pairs), fields


def _side_by_side(
    convolution: ParallelConvolution,
    h: Tensor,
    psi: KernelValues,
    batch: GraphBatch,
    fields: Block,
    seed: Tensor | None,
) -> tuple[Tensor, Tensor, Block]:
    """Sums of a parallel block: W S([c ‖ a]) = W_c S(c) + W_a S(a), of which the second joins the residual sum.

    `seed` is that of the attention where it runs graph by graph. No degree has a gradient here (`tail_reason`).
    """
    channels = convolution.channels
    kernel, bias = convolution.parts(psi)
    heads, widths = channels.heads, [channels.depthwise.convolved, channels.heads.convolved]
    summed = convolve(channels.depthwise, h, KernelValues(kernel, None), batch.pairs)
    if seed is not None:
        of_attention = attended(heads, h, bias, batch, seed)
    else:
        of_attention = convolve(heads, h, heads.weights(h, bias, batch.pairs), batch.pairs)
    weight, weight_a = fields.weight.split(widths, dim=1)
    if convolution.degree_scaler is not None:
        theta1, theta1_a = fields.theta1.split(widths)
        theta2, theta2_a = fields.theta2.split(widths)
        fields = fields._replace(theta1=theta1, theta2=theta2)
        of_attention = of_attention * (theta1_a + batch.degree.sqrt().unsqueeze(-1) * theta2_a)
    return h + of_attention @ weight_a.T, summed, fields._replace(weight=weight.contiguous())


def attended(heads: AttentionHeads, h: Tensor, bias: Tensor, batch: GraphBatch, seed: Tensor) -> Tensor:
    """Σ_j α_ij V h_j [N, D] of h [N, D] and biases [P, H]; `seed` [1] is that of the block."""
    query, key, value = heads.query, heads.key, heads.value
    weight = torch.cat([query.weight, key.weight, value.weight])
    shift = torch.cat([query.bias, torch.zeros_like(query.bias), value.bias])
    graphs = Graphs(batch.node_ptr, batch.pairs.rowptr)
    return graph_attention(linear(h, weight, shift), bias, graphs, heads.kernel, heads.dropout, seed)
