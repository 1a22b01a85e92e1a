"""The kernels ψ of all layers as one Triton launch per stage; the equation is in `naive`.

Kept for the backward pass: e and the output of every stage but the last. Normalised and activated values, dropout masks
and ψ's own input are recomputed. Under autocast ψ and gradients are bfloat16, values between stages float16.

Rows of all large tensors lie a multiple of 16 bytes apart; ψ and the gradients are views of their channels.

Legend: L groups (layers), R rows, K channels in, D channels out, S parts.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from ckgconv.backends.cuda.pairs_pass.backward_stage import backward_stage
from ckgconv.backends.cuda.pairs_pass.forward_stage import forward_stage
from ckgconv.backends.cuda.pairs_pass.kernels import input_gradient, row_moments
from ckgconv.backends.cuda.pairs_pass.naive import Stage
from ckgconv.backends.cuda.pairs_pass.options import Running, Settings, backward_launch, forward_launch, splits_of
from ckgconv.backends.cuda.schedule import has_places, now, put_off
from ckgconv.ops.launch import block, pitch, power_of_two, product_precision, storage, tall
from ckgconv.ops.reductions import summed, write_sums

INPUT_ROWS = 64  # of a tile of the input's gradient
FIELDS = len(Stage._fields)


def kernel_mlp(
    x: Tensor,
    stages: Sequence[Stage],
    running: Running,
    momentum: float,
    row_weight: Tensor | None,
    filled: Tensor | None,
    seed: Tensor,
    mlp_dropout: float,
    kernel_dropout: float,
    dropped_rows: int,
    epsilon: float,
    x_part: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """ψ [L, R, D] of x [R, K] in training, and the moments [2B + 1, 3, L, K] (W, μ, σ²) of each stage's input.

    Args:
        running: running statistics, which move by `momentum` towards those of the batch.
        row_weight: [R], None where each row counts once.
        filled: [1] integer, rows from there on are padding: neither read nor written; None where all are real.
        seed: [1] int64, of the dropout masks; rows from `dropped_rows` on are not dropped.
        x_part: [3, K], W, μ and M₂ of x, where they are known.
    """
    settings = Settings(
        running, momentum, mlp_dropout, kernel_dropout, dropped_rows, epsilon, storage(x), product_precision()
    )
    fields = (field for stage in stages for field in stage)
    return KernelMLP.apply(x, x_part, row_weight, _filled(x, filled), seed, settings, *fields)


def evaluated_kernel_mlp(
    x: Tensor, stages: Sequence[Stage], running: Running, filled: Tensor | None, epsilon: float
) -> Tensor:
    """ψ [L, R, D] with the running statistics in place of the batch's; without gradient."""
    filled = _filled(x, filled)
    settings = Settings(running, 0.0, 0.0, 0.0, x.shape[0], epsilon, storage(x), product_precision())
    outputs = _forward(pitched(x), None, None, filled, filled, settings, stages, None)
    return outputs[-1][..., : stages[-1].bias.shape[1]]


def pitched(x: Tensor) -> Tensor:
    """x [..., D] in rows of its pitch, zeros behind the channels."""
    missing = pitch(x.shape[-1]) - x.shape[-1]
    return F.pad(x, (0, missing)) if missing else x.contiguous()


def _whole(gradient: Tensor) -> Tensor:
    """∂ψ [L, R, D] in rows of its pitch: the node pass returns a view of such a tensor."""
    base, wide = gradient._base, pitch(gradient.shape[-1])
    if base is not None and base.shape == (*gradient.shape[:-1], wide) and base.stride() == gradient.stride():
        return base
    return pitched(gradient)


class KernelMLP(torch.autograd.Function):
    """x and its moments, row weights, filled rows, seed, settings and four fields of each stage → ψ, moments."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        x_part: Tensor | None,
        row_weight: Tensor | None,
        filled: Tensor,
        seed: Tensor,
        settings: Settings,
        *fields: Tensor,
    ) -> tuple[Tensor, Tensor]:
        x = pitched(x)
        stages = _stages(fields)
        groups, channels = stages[0].scale.shape
        moments = x.new_empty(len(stages), 3, groups, channels, dtype=torch.float32)
        outputs = _forward(x, x_part, row_weight, filled, seed, settings, stages, moments)
        ctx.save_for_backward(x, row_weight, filled, seed, moments, *fields, *outputs[:-1])
        ctx.settings = settings
        ctx.mark_non_differentiable(moments)
        ctx.set_materialize_grads(False)
        return outputs[-1][..., : stages[-1].bias.shape[1]], moments

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        x, row_weight, filled, seed, moments, *rest = ctx.saved_tensors
        stages = _stages(rest[: -(len(rest) // (FIELDS + 1))] if len(rest) > FIELDS else rest)
        outputs = rest[FIELDS * len(stages) :]
        gradient_x, gradients = _backward(
            x, row_weight, filled, seed, ctx.settings, stages, moments, outputs, _whole(gradient)
        )
        return gradient_x, None, None, None, None, None, *gradients


def _stages(fields: Sequence[Tensor]) -> list[Stage]:
    return [Stage(*fields[start : start + FIELDS]) for start in range(0, len(fields), FIELDS)]


def _filled(x: Tensor, filled: Tensor | None) -> Tensor:
    return torch.full((1,), x.shape[0], dtype=torch.int32, device=x.device) if filled is None else filled


def _forward(
    x: Tensor,
    x_part: Tensor | None,
    row_weight: Tensor | None,
    filled: Tensor,
    seed: Tensor,
    settings: Settings,
    stages: Sequence[Stage],
    moments: Tensor | None,
) -> list[Tensor]:
    """Outputs [L, R, D] of every stage, or of the last alone where no moments are asked for.

    Those of the batch are taken and written where there is room for them.
    """
    rows, channels = x.shape[0], stages[0].scale.shape[1]
    groups, last = stages[0].scale.shape[0], len(stages) - 1
    busy, tile, options = forward_launch(channels, settings.storage)
    splits = splits_of(x, groups, busy, tile)
    if x_part is not None:
        parts = x_part.view(3, 1, 1, channels)
    else:
        parts = x.new_empty(3, 1, splits, channels, dtype=torch.float32)
        if moments is not None:
            row_moments[(splits,)](
                x,
                parts,
                row_weight,
                filled,
                splits,
                K=channels,
                PITCH=x.shape[1],
                WEIGHTED=row_weight is not None,
                BLOCK_K=block(channels),
                **tall(rows, channels),
            )
    values, state = x, x
    outputs: list[Tensor] = []
    for number, stage in enumerate(stages):
        _, wide, narrow = stage.weight.shape
        dtype = settings.storage if number == last else settings.between
        y = torch.empty(groups, rows, pitch(wide), dtype=dtype, device=x.device)
        y_parts = x.new_empty(3, groups, splits, wide, dtype=torch.float32)
        forward_stage[(groups, splits)](
            values,
            0 if values.dim() == 2 else values.stride(0),
            parts,
            0 if parts.shape[1] == 1 else splits * narrow,
            parts.stride(0),
            None if moments is None else moments[number],
            *settings.running[number],
            settings.momentum,
            stage.scale,
            stage.shift,
            stage.weight,
            stage.bias,
            state,
            0 if state.dim() == 2 else state.stride(0),
            y,
            y.stride(0),
            y_parts,
            settings.running[min(number + 1, last)][0],
            row_weight,
            filled,
            seed,
            **settings.drops(number, last, rows),
            epsilon=settings.epsilon,
            count=parts.shape[2],
            splits=splits,
            K=narrow,
            D=wide,
            K_PITCH=pitch(narrow),
            D_PITCH=pitch(wide),
            WEIGHTED=row_weight is not None,
            ACT=number < last,
            BIAS=True,
            RESIDUAL=number % 2 == 1,
            GIVEN=moments is None,
            TRACK=moments is not None and number < last,
            PRECISION=settings.precision,
            BLOCK_R=tile,
            BLOCK_K=block(narrow),
            BLOCK_D=block(wide),
            PARTS=power_of_two(parts.shape[2]),
            **options,
        )
        # In evaluation nothing is kept for a backward pass.
        outputs = [y] if moments is None else [*outputs, y]
        values, parts = y, y_parts
        if number % 2:
            state = y
    return outputs


def _backward(
    x: Tensor,
    row_weight: Tensor | None,
    filled: Tensor,
    seed: Tensor,
    settings: Settings,
    stages: Sequence[Stage],
    moments: Tensor,
    outputs: Sequence[Tensor],
    gradient: Tensor,
) -> tuple[Tensor, list[Tensor]]:
    """∂x, and the gradients of the fields of every stage."""
    rows, channels = x.shape[0], stages[0].scale.shape[1]
    groups, last = stages[0].scale.shape[0], len(stages) - 1
    busy, tile, options = backward_launch(channels, settings.storage)
    splits = splits_of(x, groups, busy, tile)
    sizes = [[stage.weight.numel(), stage.bias.numel(), 2 * stage.scale.numel()] for stage in stages]
    width = sum(map(sum, sizes))
    parts = x.new_empty(splits, width, dtype=torch.float32)
    views = parts.split([size for each in sizes for size in each], dim=1)
    pull = torch.empty(groups, rows, pitch(channels), dtype=settings.storage, device=x.device)
    carry = torch.empty_like(pull) if last else pull
    for number in range(last, -1, -1):
        stage = stages[number]
        final = number == last
        following = stages[min(number + 1, last)]
        values = outputs[number - 1] if number else x
        _, wide, narrow = stage.weight.shape
        backward_stage[(groups, splits)](
            gradient if final else pull,
            views[3 * min(number + 1, last) + 2],
            width,
            splits,
            gradient if final else outputs[number],
            moments[min(number + 1, last)],
            following.scale,
            carry,
            values,
            0 if values.dim() == 2 else values.stride(0),
            moments[number],
            stage.scale,
            stage.shift,
            stage.weight,
            pull,
            views[3 * number + 2],
            views[3 * number],
            views[3 * number + 1],
            width,
            rows * pitch(wide),
            pull.stride(0),
            row_weight,
            filled,
            rows,
            seed,
            **settings.drops(number, last, rows),
            epsilon=settings.epsilon,
            splits=splits,
            K=narrow,
            D=wide,
            K_PITCH=pitch(narrow),
            D_PITCH=pitch(wide),
            WEIGHTED=row_weight is not None,
            ACT=not final,
            THROUGH_NORM=not final,
            # A bias right before a norm has no effect, and so no gradient.
            PLAIN=number % 2 == 0 and not final,
            ADD_CARRY=number % 2 == 1 and number < last - 1,
            WRITE_CARRY=number % 2 == 1,
            CLEAR=False,
            FIRST=number == 0,
            JOIN=number == 0 and last > 0,
            PRECISION=settings.precision,
            BLOCK_R=tile,
            BLOCK_K=block(narrow),
            BLOCK_D=block(wide),
            PARTS=power_of_two(splits),
            **options,
        )
    gradient_x = torch.empty_like(x)
    last_stage = now()
    input_gradient[(-(-rows // INPUT_ROWS),)](
        pull,
        summed(views[2]),
        x,
        moments[0],
        stages[0].scale,
        gradient_x,
        pull.stride(0),
        row_weight,
        filled,
        settings.epsilon,
        rows,
        groups,
        K=channels,
        PITCH=x.shape[1],
        WEIGHTED=row_weight is not None,
        BLOCK_R=INPUT_ROWS,
        BLOCK_K=block(channels),
    )
    # The last launch waits for memory; what was put off, and the stem of the nodes, may compute beside it.
    has_places(since=last_stage)
    # It reads as much as the input's gradient: at once, the stem, which waits for that, would wait for both.
    sums = torch.empty_like(parts[0])
    put_off(partial(write_sums, parts, sums), parts, sums)
    return gradient_x[:, :channels], _field_gradients(sums.split([size for each in sizes for size in each]), stages)


def _field_gradients(sums: Sequence[Tensor], stages: Sequence[Stage]) -> list[Tensor]:
    """Gradients in the order of the fields: γ, β, W, b of each stage."""
    gradients: list[Tensor] = []
    for number, stage in enumerate(stages):
        linear, bias, norm = sums[3 * number : 3 * number + 3]
        shift, scale = norm.view(2, *stage.scale.shape)
        gradients += [scale, shift, linear.view_as(stage.weight), bias.view_as(stage.bias)]
    return gradients
