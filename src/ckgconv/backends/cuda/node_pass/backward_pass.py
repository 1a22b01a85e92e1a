"""The node pass backward, launch after launch: three per block; the kernels are in `backward`.

Legend: L blocks, N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.backward import backward_convolution, backward_ffn, backward_projection, norm_sums
from ckgconv.backends.cuda.node_pass.gradients import PIECE, field_gradients
from ckgconv.backends.cuda.node_pass.naive import Block, Lists
from ckgconv.backends.cuda.node_pass.options import (
    NODES,
    Settings,
    convolution_launch,
    hidden_tile,
    parts_of,
    plain_launch,
)
from ckgconv.ops.launch import block, early_launch, pitch, power_of_two

CONVOLVED = 8  # nodes of a tile of the convolution, which has no product here; with 16, values spill out of registers
SUMS = 4  # Σg, Σ g t̂ of the first norm, ∂θ₁, ∂θ₂; those of the second norm come from other programs


def backward_pass(
    x: Tensor,
    psi: Tensor,
    filled: Tensor,
    seed: Tensor,
    settings: Settings,
    lists: Lists,
    blocks: Sequence[Block],
    moments: Tensor,
    kept: Tensor,
    gradient: Tensor,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """∂x, ∂ψ and the gradients of the fields of every block."""
    (nodes, width), layers = x.shape, len(blocks)
    hidden = blocks[0].weight_in.shape[0]
    rows = -(-nodes // PIECE) * PIECE
    splits, splits_out = parts_of(rows), parts_of(nodes, CONVOLVED)
    gradient_psi = torch.empty(*psi.shape[:2], psi.stride(1), dtype=psi.dtype, device=psi.device)
    sums = torch.empty(splits, layers, SUMS, width, device=x.device)
    sums_out = torch.empty(splits_out, layers, 2, width, device=x.device)
    # Both factors of each matrix's gradient for all blocks.
    narrow = torch.empty(4, layers, rows, pitch(width), device=x.device)
    wide = torch.empty(2, layers, rows, hidden, device=x.device)
    out_kept, u_kept, projected_kept, scaled_kept = narrow
    hidden_kept, gradient_hidden = wide
    pull, residual, gy = torch.empty(3, nodes, width, device=x.device)
    common: dict[str, Any] = {"epsilon": settings.epsilon, "D": width, "BLOCK_D": block(width)}
    by_rows = {"splits": splits, "BLOCK_N": NODES, "PITCH": narrow.shape[3]}
    by_tiles = {"splits": splits_out, "BLOCK_N": CONVOLVED}
    convolution, plain, early = convolution_launch(psi), plain_launch(width, settings), early_launch(x)
    stride, stride_out = sums.stride(0), sums_out.stride(0)
    norm_sums[(splits_out,)](
        gradient, kept[-1, 2], moments[-1, 1], sums_out[0, -1], stride_out, filled, **common, **by_tiles, **plain
    )
    incoming = gradient
    for number in range(layers - 1, -1, -1):
        each, (y, t, v) = blocks[number], kept[number]
        backward_ffn[(splits,)](
            incoming,
            v,
            moments[number, 1],
            each.scale_out,
            sums_out[0, number],
            stride_out,
            splits_out,
            t,
            moments[number, 0],
            each.scale,
            each.shift,
            sums[0, number, 0],
            stride,
            each.weight_in,
            each.bias_in,
            each.weight_out,
            residual,
            u_kept[number],
            hidden_kept[number],
            gradient_hidden[number],
            out_kept[number],
            filled,
            seed,
            **settings.drops(2 * number + 1),
            **common,
            **by_rows,
            **plain,
            **early,
            N=rows,
            H=hidden,
            PRECISION=settings.precision,
            BLOCK_H=hidden_tile(width, hidden),
            V_PARTS=power_of_two(splits_out),
        )
        backward_projection[(splits,)](
            residual,
            t,
            moments[number, 0],
            each.scale,
            sums[0, number, 0],
            stride,
            y,
            lists.support_size,
            lists.degree,
            each.theta1,
            each.theta2,
            each.weight,
            residual,
            projected_kept[number],
            scaled_kept[number],
            gy,
            sums[0, number, 2],
            filled,
            seed,
            **settings.drops(2 * number),
            **common,
            **by_rows,
            **plain,
            **early,
            N=rows,
            PRECISION=settings.precision,
            PARTS=power_of_two(splits),
        )
        before = max(number - 1, 0)
        backward_convolution[(splits_out,)](
            gy,
            residual,
            psi[number],
            gradient_psi[number],
            lists.sender_ptr,
            lists.sender_rows,
            lists.sender_receiver,
            kept[before, 2] if number else x,
            moments[before, 1],
            blocks[before].scale_out,
            blocks[before].shift_out,
            sums_out[0, before],
            stride_out,
            pull,
            filled,
            N=nodes,
            **common,
            **by_tiles,
            **convolution,
            **early,
            NORM=number > 0,
        )
        incoming = pull
    gradients = field_gradients(sums, sums_out, narrow, wide, width, settings.precision)
    return pull, gradient_psi[..., :width], gradients
