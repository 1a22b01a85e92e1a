"""Weighted batch normalisation of few rows as one Triton launch each way; `analytic` is the specification.

A program owns a few channels of all rows, reads them twice, the second time from cache, and moves their running
statistics. In plain torch a norm of 700 nodes is thirty launches, each of which waits for the one before it.

Legend: R rows, D channels.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.batch_norm.analytic import differentiable_backward
from ckgconv.ops.derivatives import will_be_differentiated
from ckgconv.ops.tiles import TINY, merge_tile, no_moments, track, write_moments

CHANNELS = 8  # of a program: 32 bytes of each row
ROWS, FEW_ROWS = 1024, 256  # of a tile: as many as there are, where registers hold them


class TrackingBatchNorm(torch.autograd.Function):
    """x, weights of rows, γ, β, running statistics, momentum, ε → y."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        row_weight: Tensor | None,
        scale: Tensor,
        shift: Tensor,
        running_mean: Tensor,
        running_variance: Tensor,
        momentum: float,
        epsilon: float,
    ) -> Tensor:
        x = x.contiguous()
        rows, width = x.shape
        y = torch.empty(rows, width, dtype=torch.float32, device=x.device)
        moments = torch.empty(3, width, dtype=torch.float32, device=x.device)
        standardise[grid(width)](
            x, row_weight, scale, shift, running_mean, running_variance, moments, y, rows, momentum, epsilon,
            **constants(x, row_weight),
        )  # fmt: skip
        ctx.save_for_backward(x, row_weight, scale, shift, moments)
        ctx.epsilon = epsilon
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, row_weight, scale, shift, moments = ctx.saved_tensors
        if will_be_differentiated(gradient):
            return *differentiable_backward(ctx, gradient, x, row_weight, scale, shift), None, None, None
        gradient = gradient.contiguous()
        rows, width = x.shape
        gradient_x = torch.empty_like(x)
        gradient_scale, gradient_shift = moments.new_empty(2, *scale.shape)
        standardise_backward[grid(width)](
            gradient, x, row_weight, scale, moments, gradient_x, gradient_scale, gradient_shift, rows, ctx.epsilon,
            **constants(x, row_weight),
        )  # fmt: skip
        return gradient_x, None, gradient_scale, gradient_shift, None, None, None, None


def grid(width: int) -> tuple[int]:
    return (-(-width // CHANNELS),)


def constants(x: Tensor, row_weight: Tensor | None) -> dict[str, Any]:
    """What both directions are compiled for."""
    tile = {"BLOCK_R": ROWS, "num_warps": 8} if x.shape[0] > FEW_ROWS else {"BLOCK_R": FEW_ROWS, "num_warps": 4}
    return {"D": x.shape[1], "WEIGHTED": row_weight is not None, "BLOCK_D": CHANNELS, **tile}


@triton.jit
def read_tile(x, row_weight, start, rows, columns, D: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK_R: tl.constexpr):
    """[BLOCK_R, BLOCK_D] float32 values from row `start` on, the weights of the rows, and offsets and mask of both."""
    row = start + tl.arange(0, BLOCK_R)
    real = row < rows
    place = row[:, None] * D + columns[None, :]
    inside = real[:, None] & (columns < D)[None, :]
    weight = tl.where(real, 1.0, 0.0)
    if WEIGHTED:
        weight = tl.load(row_weight + row, mask=real, other=0.0).to(tl.float32)
    return tl.load(x + place, mask=inside, other=0.0).to(tl.float32), weight, place, inside


@triton.jit
def standardise(
    x, row_weight, scale, shift, running_mean, running_variance, moments, y, rows, momentum, epsilon, D: tl.constexpr,
    WEIGHTED: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """y, the moments and the running statistics of a few channels."""
    columns = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    total, mean, squares = no_moments(BLOCK_D)
    for start in range(0, rows, BLOCK_R):
        values, weight, _, _ = read_tile(x, row_weight, start, rows, columns, D, WEIGHTED, BLOCK_R)
        total, mean, squares = merge_tile(total, mean, squares, values, weight)
    variance = squares / tl.maximum(total, TINY)
    counted = tl.zeros_like(mean) + total
    write_moments(moments, D, D, columns, counted, mean, variance)
    track(running_mean, running_variance, momentum, D, columns, counted, mean, variance)
    slope = tl.load(scale + columns, mask=columns < D, other=0.0) / tl.sqrt(variance + epsilon)
    offset = tl.load(shift + columns, mask=columns < D, other=0.0)
    for start in range(0, rows, BLOCK_R):
        values, _, place, inside = read_tile(x, row_weight, start, rows, columns, D, False, BLOCK_R)
        tl.store(y + place, (values - mean[None, :]) * slope[None, :] + offset[None, :], mask=inside)


@triton.jit
def standardise_backward(
    g, x, row_weight, scale, moments, gx, g_scale, g_shift, rows, epsilon, D: tl.constexpr, WEIGHTED: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients of a few channels."""
    columns = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    real = columns < D
    total = tl.load(moments + columns, mask=real, other=0.0)
    mean = tl.load(moments + D + columns, mask=real, other=0.0)
    root = 1.0 / tl.sqrt(tl.load(moments + 2 * D + columns, mask=real, other=1.0) + epsilon)
    sum_g = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    sum_gx = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(0, rows, BLOCK_R):
        values, _, place, inside = read_tile(x, row_weight, start, rows, columns, D, False, BLOCK_R)
        pull = tl.load(g + place, mask=inside, other=0.0).to(tl.float32)
        sum_g += pull
        sum_gx += pull * (values - mean[None, :]) * root[None, :]
    at_shift, at_scale = tl.sum(sum_g, axis=0), tl.sum(sum_gx, axis=0)
    tl.store(g_shift + columns, at_shift, mask=real)
    tl.store(g_scale + columns, at_scale, mask=real)
    slope = tl.load(scale + columns, mask=real, other=0.0) * root
    share = 1.0 / tl.maximum(total, TINY)
    for start in range(0, rows, BLOCK_R):
        values, weight, place, inside = read_tile(x, row_weight, start, rows, columns, D, WEIGHTED, BLOCK_R)
        pull = tl.load(g + place, mask=inside, other=0.0).to(tl.float32)
        standard = (values - mean[None, :]) * root[None, :]
        common = (at_shift[None, :] + standard * at_scale[None, :]) * (weight[:, None] * share[None, :])
        tl.store(gx + place, ((pull - common) * slope[None, :]).to(gx.dtype.element_ty), mask=inside)
