"""All blocks of a network over its nodes, with the kernels of all layers given (Eq. 9, L times).

One fused node pass where it applies, block after block elsewhere; the numbers are the same.

Legend: L blocks, N nodes, P pairs, D width.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.naive import Block, Lists
from ckgconv.backends.cuda.schedule import has_room, together
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.conv import sender_lists
from ckgconv.nn.kernel import GivenKernels, Kernel, only_real
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.dispatch import fits
from ckgconv.ops.launch import draw_seeds


def run_blocks(
    blocks: Sequence[CKGConvBlock],
    kernel: Kernel | GivenKernels,
    h: Tensor,
    pair_features: Tensor,
    part: Tensor | None,
    seeds: Tensor | None,
    batch: GraphBatch,
) -> Tensor:
    """h⁰ [N, D], which may still be on its way beside, and pair features [R, D] → hᴸ [N, D].

    Args:
        part: [3, D], the moments (W, μ, M₂) of the pair features, where they are known.
        seeds: [2, 1], of the masks of kernels and nodes, in training on a GPU.
    """
    pairs = batch.pairs
    if not _runs_fused(blocks, h, pairs):
        together()
        has_room()
        # Once for all blocks, which on a GPU sum over both orders.
        pairs = sorted_by_sender(pairs) if dispatch.uses_triton(h) else pairs
        values = kernel.in_turn if isinstance(kernel, Kernel) else kernel
        for block, psi in zip(blocks, values(pair_features, pairs), strict=True):
            h = block(h, psi, pairs, batch.degree, batch.node_weight)
        return h
    own, other = (None, None) if seeds is None else seeds
    if blocks[0].training and other is None:  # in a network that is not
        other = draw_seeds(h.device, 1)[0]
    stacked = kernel.stacked(pair_features, pairs, part, own) if isinstance(kernel, Kernel) else None
    if stacked is None:
        stacked = only_real(torch.stack([psi.stored for psi in kernel(pair_features, pairs)]), pairs)
    together()
    has_room()
    return _fused_blocks(blocks, h, stacked, batch, other if blocks[0].training else None)


def _runs_fused(blocks: Sequence[CKGConvBlock], h: Tensor, pairs: Pairs) -> bool:
    """Depthwise convolutions, batch norms, every pair stored, and gradients in training only."""
    plain = all(
        isinstance(block.convolution_norm, WeightedBatchNorm) and isinstance(block.convolution.channels, Depthwise)
        for block in blocks
    )
    alone = not pairs.has_zero_rows and not several_processes()
    if not plain or not alone or not dispatch.uses_triton(h) or (torch.is_grad_enabled() and not blocks[0].training):
        return False
    return fits(h, pairs.num_pairs, h.shape[1])


def _fused_blocks(
    blocks: Sequence[CKGConvBlock], h: Tensor, psi: Tensor, batch: GraphBatch, seed: Tensor | None
) -> Tensor:
    from ckgconv.backends.cuda.node_pass import triton as kernels

    lists = support_lists(batch)
    fields = [_fields(block, h) for block in blocks]
    norms: list[Any] = [norm for block in blocks for norm in (block.convolution_norm, block.ffn_norm)]
    running = [norm.running for norm in norms]
    filled, epsilon = batch.node_filled, norms[0].epsilon
    if seed is None:
        return kernels.evaluated_node_pass(h, psi, lists, fields, running, filled, epsilon)
    dropout = blocks[0].dropout
    h, _ = kernels.node_pass(h, psi, lists, fields, running, norms[0].momentum, filled, seed, dropout, epsilon)
    return h


def _fields(block: CKGConvBlock, h: Tensor) -> Block:
    convolution, scaler = block.convolution, block.convolution.degree_scaler
    first: Any = block.convolution_norm
    second: Any = block.ffn_norm
    return Block(
        theta1=h.new_ones(h.shape[1]) if scaler is None else scaler.theta1,
        theta2=h.new_zeros(h.shape[1]) if scaler is None else scaler.theta2,
        weight=convolution.projection.weight,
        bias=convolution.projection.bias,
        scale=first.scale,
        shift=first.shift,
        weight_in=block.ffn_in.weight,
        bias_in=block.ffn_in.bias,
        weight_out=block.ffn_out.weight,
        bias_out=block.ffn_out.bias,
        scale_out=second.scale,
        shift_out=second.shift,
    )


def support_lists(batch: GraphBatch) -> Lists:
    """The support by receivers and by senders; sorted here unless the batch brings the order along."""
    pairs = sorted_by_sender(batch.pairs)
    lists = sender_lists(pairs)
    assert lists is not None
    return Lists(pairs.rowptr, pairs.sender, *lists, pairs.support_size.float(), batch.degree.float())


def sorted_by_sender(pairs: Pairs) -> Pairs:
    """The same pairs with their order by senders."""
    if sender_lists(pairs) is not None:
        return pairs
    sender, rows = torch.sort(pairs.sender, stable=True)
    nodes = torch.arange(pairs.rowptr.shape[0], device=rows.device)
    pointer = torch.searchsorted(sender, nodes)
    return replace(pairs, sender_ptr=pointer, sender_rows=rows, sender_receiver=pairs.receiver[rows])
