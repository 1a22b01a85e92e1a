"""A stem by the kernels of the pairs pass and of the node pass: a chain of one stage between two norms.

Legend: R rows, K channels of the encoding, D width, S parts.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ckgconv.backends.cuda.node_pass.backward import norm_sums
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.pairs_pass.backward_stage import backward_stage
from ckgconv.backends.cuda.pairs_pass.forward_stage import forward_stage
from ckgconv.backends.cuda.pairs_pass.kernels import row_moments
from ckgconv.backends.cuda.schedule import beside, has_places, now, put_off
from ckgconv.ops.dispatch import shared_memory
from ckgconv.ops.launch import block, launch, power_of_two, product_precision, programs, tall
from ckgconv.ops.reductions import summed, write_sums

# Parts: more would cost more to add up than they save. Each program of the next launch reads all of them, which weighs
# more where it has few rows of its own.
PROGRAMS, FEW_PROGRAMS = 128, 64
BUSY = 2  # programs of a multiprocessor where parts are added up beside
TALL_BYTES = 114_688  # of shared memory, for tiles of 128 rows backward
MANY = 2**16  # rows, from which on a program is given all that a multiprocessor can hold


def encoding_parts(x: Tensor, width: int, row_weight: Tensor | None, filled: Tensor | None) -> Tensor:
    """Parts [3, S, K] of the moments of x [R, K], in which nothing is learned, for a stem of so many channels."""
    x = x.float().contiguous()
    rows, channels = x.shape
    splits = _splits(x, _tile(x, width)[0])
    parts = x.new_empty(3, splits, channels)
    row_moments[(splits,)](
        x,
        parts,
        row_weight,
        _filled(x, filled),
        splits,
        K=channels,
        PITCH=channels,
        WEIGHTED=row_weight is not None,
        BLOCK_K=block(channels),
        **tall(rows, channels),
    )
    return parts


def stem(
    x: Tensor,
    parts: Tensor,
    attributes: Tensor,
    scale: Tensor,
    shift: Tensor,
    weight: Tensor,
    scale_out: Tensor,
    shift_out: Tensor,
    running: Sequence[tuple[Tensor, Tensor]],
    momentum: float,
    row_weight: Tensor | None,
    filled: Tensor | None,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """e [R, D] from x [R, K], a [R, D], W [D, K], and the moments [3, K], [3, D] (W, μ, σ²) of both norms.

    Those of x come as parts, from `encoding_parts`. Last come those of e itself, [3, D], as a part (W, μ, M₂): behind
    a norm they need no sum, μ = β and M₂ = W γ²σ²/(σ² + ε).

    `running` are the statistics of both norms, which move by `momentum` towards those of the batch.
    No gradient reaches x: coordinates are not learned. Rows of padding come out as zeros.
    """
    filled = _filled(x, filled)
    precision = "tf32" if torch.is_autocast_enabled(x.device.type) else product_precision()
    settings = Settings(running, momentum, epsilon, precision)
    return Stem.apply(x, parts, attributes, scale, shift, weight, scale_out, shift_out, row_weight, filled, settings)


class Settings(NamedTuple):
    """What has no gradient."""

    running: Sequence[tuple[Tensor, Tensor]]
    momentum: float
    epsilon: float
    precision: str


class Stem(torch.autograd.Function):
    """The arguments of `stem` → e, the moments of both norms, and those of e as a part."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        parts: Tensor,
        attributes: Tensor,
        scale: Tensor,
        shift: Tensor,
        weight: Tensor,
        scale_out: Tensor,
        shift_out: Tensor,
        row_weight: Tensor | None,
        filled: Tensor,
        settings: Settings,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, attributes = x.float().contiguous(), attributes.float().contiguous()
        (rows, channels), width = x.shape, weight.shape[0]
        tile, options = _tile(x, width)
        splits = parts.shape[1]
        moments, moments_out = x.new_empty(3, channels), x.new_empty(3, width)
        parts_out = x.new_empty(3, splits, width)
        weighted = row_weight is not None
        features = x.new_empty(rows, width)
        forward_stage[(1, splits)](
            x,
            0,
            parts,
            0,
            parts.stride(0),
            moments,
            *settings.running[0],
            settings.momentum,
            scale,
            shift,
            weight,
            scale,
            attributes,
            0,
            features,
            0,
            parts_out,
            settings.running[1][0],
            row_weight,
            filled,
            filled,
            0,
            0,
            1.0,
            0,
            settings.epsilon,
            splits,
            splits,
            K=channels,
            D=width,
            K_PITCH=channels,
            D_PITCH=width,
            WEIGHTED=weighted,
            ACT=False,
            BIAS=False,
            RESIDUAL=True,
            DROP=False,
            SPARES=False,
            GIVEN=False,
            TRACK=True,
            PRECISION=settings.precision,
            BLOCK_R=tile,
            BLOCK_K=block(channels),
            BLOCK_D=block(width),
            PARTS=power_of_two(splits),
            # Its programs wait for parts of the moments; backward, four warps are faster for few rows.
            **{**options, "num_warps": max(8, options["num_warps"])},
        )
        e, e_part = torch.empty_like(features), torch.empty_like(moments_out)
        apply_norm[(min(-(-rows // 64), programs(x, 4)),)](
            features,
            parts_out,
            moments_out,
            *settings.running[1],
            settings.momentum,
            scale_out,
            shift_out,
            e,
            e_part,
            filled,
            settings.epsilon,
            rows,
            D=width,
            splits=splits,
            GIVEN=False,
            WEIGHTED=weighted,
            TILE=tile,
            BLOCK_N=64,
            BLOCK_D=block(width),
            PARTS=power_of_two(splits),
        )
        ctx.save_for_backward(x, features, scale, shift, weight, scale_out, row_weight, filled, moments, moments_out)
        ctx.settings = settings
        ctx.mark_non_differentiable(moments, moments_out, e_part)
        ctx.set_materialize_grads(False)
        return e, moments, moments_out, e_part

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, features, scale, shift, weight, scale_out, row_weight, filled, moments, moments_out = ctx.saved_tensors
        gradient = gradient.contiguous()
        channels, width = x.shape[1], weight.shape[0]
        tile, options = _tile(x, width)
        splits = _splits(x, tile)
        # Gradients of parameters are added up beside, so their parts may be many.
        many = splits if x.shape[0] > MANY else min(programs(x, BUSY), -(-x.shape[0] // tile))
        sizes = [weight.numel(), width, 2 * channels]
        parts, sums_out = x.new_empty(many, sum(sizes)), x.new_empty(splits, 2 * width)
        linear, bias, sums = parts.split(sizes, dim=1)
        norm_sums[(splits,)](
            gradient,
            features,
            moments_out,
            sums_out,
            sums_out.stride(0),
            filled,
            ctx.settings.epsilon,
            D=width,
            splits=splits,
            BLOCK_N=tile,
            BLOCK_D=block(width),
            num_warps=options["num_warps"],
        )
        norm_out = x.new_empty(2 * width)
        put_off(partial(write_sums, sums_out, norm_out), sums_out, norm_out)
        # `norm_sums` waited for memory with nothing beside it: 5 µs for the pairs of ZINC, with it 30.
        behind_sums = now()
        carried = torch.empty_like(features)
        backward_stage[(1, many)](
            gradient,
            sums_out,
            sums_out.stride(0),
            splits,
            features,
            moments_out,
            scale_out,
            carried,
            x,
            0,
            moments,
            scale,
            shift,
            weight,
            None,
            sums,
            linear,
            bias,
            parts.stride(0),
            0,
            0,
            row_weight,
            filled,
            x.shape[0],
            filled,
            0,
            0,
            1.0,
            0,
            ctx.settings.epsilon,
            many,
            K=channels,
            D=width,
            K_PITCH=channels,
            D_PITCH=width,
            WEIGHTED=row_weight is not None,
            ACT=False,
            THROUGH_NORM=True,
            PLAIN=True,
            ADD_CARRY=False,
            WRITE_CARRY=True,
            CLEAR=True,
            FIRST=False,
            JOIN=False,
            DROP=False,
            SPARES=False,
            PRECISION=ctx.settings.precision,
            BLOCK_R=tile,
            BLOCK_K=block(channels),
            BLOCK_D=block(width),
            PARTS=power_of_two(splits),
            **options,
        )
        has_places(since=behind_sums)
        with beside(parts):
            gradient_weight, _, norm = summed(parts).split(sizes)
        shift_sum, scale_sum = norm.view(2, *scale.shape)
        shift_out_sum, scale_out_sum = norm_out.view(2, *scale_out.shape)
        fields = scale_sum, shift_sum, gradient_weight.view_as(weight), scale_out_sum, shift_out_sum
        return None, None, carried, *fields, None, None, None


def _tile(x: Tensor, width: int) -> tuple[int, dict[str, int]]:
    """Rows of a tile, and the options of a launch: parts are few, so many rows need many warps in each program."""
    if x.shape[0] <= MANY:
        return 64, launch(width)
    tall_fits = width <= 64 and shared_memory(x) >= TALL_BYTES
    return 128 if tall_fits else 64, {**launch(width), "num_warps": 16}


def _filled(x: Tensor, filled: Tensor | None) -> Tensor:
    return torch.full((1,), x.shape[0], dtype=torch.int32, device=x.device) if filled is None else filled


def _splits(x: Tensor, tile: int) -> int:
    most = PROGRAMS if x.shape[0] > MANY else FEW_PROGRAMS
    return max(1, min(programs(x, 1), most, -(-x.shape[0] // tile)))
