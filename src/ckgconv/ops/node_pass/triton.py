"""All blocks of a network over its nodes, five Triton launches per block; the equations are in `naive`.

Kept for the backward pass: y, t and v of each block [N, D], and ψ. Everything else is recomputed.

Legend: L blocks, N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ckgconv.ops.beside import beside
from ckgconv.ops.fused import block, early_launch, launch, pitch, power_of_two, product_precision, threshold
from ckgconv.ops.node_pass.backward import backward_convolution, backward_ffn, backward_projection, norm_sums
from ckgconv.ops.node_pass.forward import apply_norm, forward_convolution, forward_ffn
from ckgconv.ops.node_pass.gradients import PIECE, field_gradients
from ckgconv.ops.node_pass.naive import Block, Lists

NODES = 16  # rows of a tile: the least that matrix units take
PROGRAMS = 128  # more parts would cost more to add up than they save
FIELDS = len(Block._fields)
SUMS = 6  # Σg, Σ g t̂ of the first norm, ∂θ₁, ∂θ₂, ∂b, ∂b₂; those of the second norm come from other programs


Running = Sequence[tuple[Tensor, Tensor]]  # mean and variance [D] of both norms of each block, one after the other


class Settings(NamedTuple):
    """What has no gradient."""

    running: Running
    momentum: float
    dropout: float
    epsilon: float
    precision: str

    def drops(self, number: int) -> dict[str, Any]:
        """Arguments of the dropout of that number."""
        level, factor = threshold(self.dropout)
        return {"draw": number, "level": level, "factor": factor, "DROP": self.dropout > 0}


def node_pass(
    x: Tensor,
    psi: Tensor,
    lists: Lists,
    blocks: Sequence[Block],
    running: Running,
    momentum: float,
    filled: Tensor | None,
    seed: Tensor,
    dropout: float,
    epsilon: float,
) -> tuple[Tensor, Tensor]:
    """x [N, D], ψ [L, P, D] → x' of the last block [N, D], and the moments [L, 2, 3, D] (W, μ, σ²) of both norms.

    Args:
        running: running statistics, which move by `momentum` towards those of the batch.
        filled: [1] integer, nodes from there on are padding and come out as zeros; None where all are real.
        seed: [1] int64, of the dropout masks.
    """
    settings = Settings(running, momentum, dropout, epsilon, _precision(x))
    fields = (field for each in blocks for field in each)
    return NodePass.apply(x.float(), psi, _filled(x, filled), seed, settings, *lists, *fields)


def evaluated_node_pass(
    x: Tensor,
    psi: Tensor,
    lists: Lists,
    blocks: Sequence[Block],
    running: Running,
    filled: Tensor | None,
    epsilon: float,
) -> Tensor:
    """The same with the running statistics in place of the batch's; without gradient."""
    settings = Settings(running, 0.0, 0.0, epsilon, _precision(x))
    filled = _filled(x, filled)
    return _forward(x.float().contiguous(), _rows_together(psi), filled, filled, settings, lists, blocks, None)[0]


class NodePass(torch.autograd.Function):
    """x, ψ, filled nodes, seed, settings, the support and the fields of each block → x', moments."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, psi: Tensor, filled: Tensor, seed: Tensor, settings: Settings, *rest: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, psi = x.contiguous(), _rows_together(psi)
        lists, blocks = _unpacked(rest)
        moments = torch.empty(len(blocks), 2, 3, x.shape[1], device=x.device)
        out, kept = _forward(x, psi, filled, seed, settings, lists, blocks, moments)
        ctx.save_for_backward(x, psi, filled, seed, moments, kept, *rest)
        ctx.settings = settings
        ctx.mark_non_differentiable(moments)
        ctx.set_materialize_grads(False)
        return out, moments

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        x, psi, filled, seed, moments, kept, *rest = ctx.saved_tensors
        lists, blocks = _unpacked(rest)
        gradient_x, gradient_psi, gradients = _backward(
            x, psi, filled, seed, ctx.settings, lists, blocks, moments, kept, gradient.contiguous()
        )
        fields = (field for each in blocks for field in each)
        shaped = [value.view_as(field) for value, field in zip(gradients, fields, strict=True)]
        return gradient_x, gradient_psi, None, None, None, *([None] * len(lists)), *shaped


def _precision(x: Tensor) -> str:
    """Nodes are few: under autocast the products take tf32, not bfloat16."""
    return "tf32" if torch.is_autocast_enabled(x.device.type) else product_precision()


def _filled(x: Tensor, filled: Tensor | None) -> Tensor:
    return torch.full((1,), x.shape[0], dtype=torch.int32, device=x.device) if filled is None else filled


def _unpacked(rest: Sequence[Tensor]) -> tuple[Lists, list[Block]]:
    fields = rest[len(Lists._fields) :]
    blocks = [Block(*fields[start : start + FIELDS]) for start in range(0, len(fields), FIELDS)]
    return Lists(*rest[: len(Lists._fields)]), blocks


def _rows_together(psi: Tensor) -> Tensor:
    """ψ [L, P, D] with the channels of a row side by side; rows may have more behind them."""
    return psi if psi.stride(2) == 1 and psi.stride(0) == psi.shape[1] * psi.stride(1) else psi.contiguous()


def _convolution_launch(psi: Tensor) -> dict[str, int]:
    """Senders that are read at once, and warps: with four of them, values would not fit into registers."""
    return {"num_warps": 8, "num_stages": 1, "CHUNK": 8, "PITCH": psi.stride(1)}


def _plain_launch(width: int, settings: Settings) -> dict[str, int]:
    """Of the other kernels; matrices that are taken apart need twice the registers."""
    return {**launch(width), **({"num_warps": 8} if settings.precision == "tf32x3" else {})}


def _hidden_tile(width: int, hidden: int) -> int:
    """Hidden channels at once: all of them where both matrices fit on chip."""
    return min(block(hidden), 128 if width <= 64 else 64)


def _backward_tile(nodes: int) -> int:
    """Nodes of a tile of the convolution's backward pass, which has no product: the fewer, the more programs."""
    return NODES if nodes > PROGRAMS * NODES // 2 else NODES // 2


def _splits(nodes: int, tile: int = NODES) -> int:
    return min(PROGRAMS, -(-nodes // tile))


def _forward(
    x: Tensor,
    psi: Tensor,
    filled: Tensor,
    seed: Tensor,
    settings: Settings,
    lists: Lists,
    blocks: Sequence[Block],
    moments: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """x', and y, t, v of each block [L, 3, N, D]; the batch's moments are taken where there is room for them."""
    nodes, width = x.shape
    hidden = blocks[0].weight_in.shape[0]
    splits = _splits(nodes)
    kept = torch.empty(len(blocks), 3, nodes, width, device=x.device)
    parts = torch.empty(2, 3, splits, width, device=x.device)
    tile = {"BLOCK_N": NODES, "BLOCK_D": block(width), "PARTS": power_of_two(splits)}
    common = {"epsilon": settings.epsilon, "D": width, "splits": splits, **tile}
    convolution, plain, early = _convolution_launch(psi), _plain_launch(width, settings), early_launch(x)
    given = moments is None
    state = {"GIVEN": given, "TRACK": not given, "PRECISION": settings.precision}
    source, previous = x, blocks[0]

    def norm(place: int) -> list[Any]:
        """Where the moments and running statistics of a norm are; those of block l are norms 2l and 2l + 1."""
        room = None if moments is None else moments[place // 2, place % 2]
        return [room, *settings.running[place], settings.momentum]

    for number, (each, kernel) in enumerate(zip(blocks, psi, strict=True)):
        y, t, v = kept[number]
        forward_convolution[(splits,)](
            source,
            parts[1],
            *norm(max(2 * number - 1, 0)),
            previous.scale_out,
            previous.shift_out,
            kernel,
            lists.rowptr,
            lists.sender,
            lists.support_size,
            lists.degree,
            each.theta1,
            each.theta2,
            each.weight,
            each.bias,
            y,
            t,
            parts[0],
            filled,
            seed,
            **settings.drops(2 * number),
            **common,
            **state,
            **convolution,
            **early,
            NORM=number > 0,
        )
        forward_ffn[(splits,)](
            t,
            parts[0],
            *norm(2 * number),
            each.scale,
            each.shift,
            each.weight_in,
            each.bias_in,
            each.weight_out,
            each.bias_out,
            v,
            parts[1],
            filled,
            seed,
            **settings.drops(2 * number + 1),
            **common,
            **state,
            **plain,
            **early,
            H=hidden,
            BLOCK_H=_hidden_tile(width, hidden),
        )
        source, previous = v, each
    out = torch.empty_like(x)
    apply_norm[(-(-nodes // NODES),)](
        source,
        parts[1],
        *norm(2 * len(blocks) - 1),
        previous.scale_out,
        previous.shift_out,
        out,
        filled,
        N=nodes,
        GIVEN=given,
        WEIGHTED=False,
        TILE=NODES,
        **common,
        **plain,
    )
    return out, kept


def _backward(
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
    tile = _backward_tile(nodes)
    splits, splits_out = _splits(rows), _splits(nodes, tile)
    gradient_psi = torch.empty(*psi.shape[:2], psi.stride(1), dtype=psi.dtype, device=psi.device)
    sums = torch.empty(splits, layers, SUMS, width, device=x.device)
    sums_out = torch.empty(splits_out, layers, 2, width, device=x.device)
    # Both factors of each matrix's gradient for all blocks.
    narrow = torch.empty(4, layers, rows, pitch(width), device=x.device)
    wide = torch.empty(2, layers, rows, hidden, device=x.device)
    out_kept, u_kept, projected_kept, scaled_kept = narrow
    hidden_kept, gradient_hidden = wide
    pull, residual, gy = torch.zeros(3, nodes, width, device=x.device)
    common: dict[str, Any] = {"epsilon": settings.epsilon, "D": width, "BLOCK_D": block(width)}
    by_rows = {"splits": splits, "BLOCK_N": NODES, "PITCH": narrow.shape[3]}
    by_tiles = {"splits": splits_out, "BLOCK_N": tile}
    convolution, plain, early = _convolution_launch(psi), _plain_launch(width, settings), early_launch(x)
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
            BLOCK_H=_hidden_tile(width, hidden),
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
            **common,
            **by_tiles,
            **convolution,
            **early,
            NORM=number > 0,
        )
        incoming = pull
    with beside(sums, sums_out, narrow, wide):
        gradients = field_gradients(sums, sums_out, narrow, wide, width, settings.precision)
    return pull, gradient_psi[..., :width], gradients
