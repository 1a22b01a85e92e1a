"""A pyramid of three layers in one launch, and its backward pass in another.

A head reads one row per graph: for 32 rows of 64 channels torch needs 17 launches of 3 µs, nearly all of it latency.
In the backward pass one program loops over all rows, so that sums over them have a fixed order.

Legend: M rows, D width, H₁ and H₂ hidden widths, T outputs.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from collections.abc import Sequence
from typing import Any, Literal

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.dispatch import fits
from ckgconv.ops.launch import product_precision, tile_width
from ckgconv.ops.tiles import gelu, gelu_and_slope

ROWS = 16  # of a tile
MOST_ROWS = 256  # the backward pass is one program
MOST_OUTPUTS = 64


def applies(x: Tensor, fields: Sequence[Tensor]) -> bool:
    """Three layers, float32, and few enough rows and channels for one program."""
    few = x.shape[0] <= MOST_ROWS and fields[-1].shape[0] <= MOST_OUTPUTS
    return dispatch.uses_triton(x) and x.dtype == torch.float32 and len(fields) == 6 and few and fits(x, *x.shape)


def pyramid(x: Tensor, fields: Sequence[Tensor], activation: Literal["gelu", "relu"]) -> Tensor:
    """[M, D] and W₁, b₁, W₂, b₂, W₃, b₃ → [M, T], with that activation in between."""
    return Pyramid.apply(x, activation, *fields)


class Pyramid(torch.autograd.Function):
    """x, activation and the six fields → y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, activation: str, *fields: Tensor) -> Tensor:
        x = x.contiguous()
        y = x.new_empty(x.shape[0], fields[4].shape[0])
        ctx.shapes = {**_shapes(x, fields), "RELU": activation == "relu"}
        ctx.save_for_backward(x, *fields)
        forward_pyramid[(-(-x.shape[0] // ROWS),)](x, *fields, y, x.shape[0], **ctx.shapes)
        return y

    @staticmethod
    @first_derivatives_only("the head on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *fields = ctx.saved_tensors
        gradient_x = torch.empty_like(x)
        gradients = [torch.empty_like(field) for field in fields]
        backward_pyramid[(1,)](gradient.contiguous(), x, *fields, gradient_x, *gradients, x.shape[0], **ctx.shapes)
        return gradient_x, None, *gradients


def _shapes(x: Tensor, fields: Sequence[Tensor]) -> dict[str, Any]:
    widths = {"D": x.shape[1], "H1": fields[0].shape[0], "H2": fields[2].shape[0], "T": fields[4].shape[0]}
    tiles = {f"BLOCK_{name}": tile_width(width) for name, width in widths.items()}
    return {**widths, **tiles, "BLOCK_M": ROWS, "PRECISION": product_precision()}


@triton.jit
def matrix(weight, WIDE: tl.constexpr, NARROW: tl.constexpr, BLOCK_W: tl.constexpr, BLOCK_N: tl.constexpr):
    """W as a tile [BLOCK_W, BLOCK_N], zeros beyond."""
    wide, narrow = tl.arange(0, BLOCK_W), tl.arange(0, BLOCK_N)
    inside = (wide < WIDE)[:, None] & (narrow < NARROW)[None, :]
    return tl.load(weight + wide[:, None] * NARROW + narrow[None, :], mask=inside, other=0.0)


@triton.jit
def store_matrix(
    target, values, WIDE: tl.constexpr, NARROW: tl.constexpr, BLOCK_W: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Write a tile [BLOCK_W, BLOCK_N] as a matrix [WIDE, NARROW]."""
    wide, narrow = tl.arange(0, BLOCK_W), tl.arange(0, BLOCK_N)
    inside = (wide < WIDE)[:, None] & (narrow < NARROW)[None, :]
    tl.store(target + wide[:, None] * NARROW + narrow[None, :], values, mask=inside)


@triton.jit
def rows_of(values, row, real, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of values [M, WIDTH] as a tile, zeros beyond."""
    column = tl.arange(0, BLOCK)
    return tl.load(
        values + row[:, None] * WIDTH + column[None, :], mask=real[:, None] & (column < WIDTH)[None, :], other=0.0
    )


@triton.jit
def affine(x, weight, bias, WIDE: tl.constexpr, BLOCK_W: tl.constexpr, PRECISION: tl.constexpr):
    """x Wᵀ + b with W a tile; columns beyond are zero."""
    column = tl.arange(0, BLOCK_W)
    shift = tl.load(bias + column, mask=column < WIDE, other=0.0)
    return tl.dot(x, tl.trans(weight), input_precision=PRECISION) + shift[None, :]


@triton.jit
def active(n, RELU: tl.constexpr):
    """ReLU(n) or GELU(n)."""
    if RELU:  # noqa: SIM108  decided at compile time
        values = tl.maximum(n, 0.0)
    else:
        values = gelu(n)
    return values


@triton.jit
def active_and_slope(n, RELU: tl.constexpr):
    """The same and its derivative."""
    if RELU:
        values, slope = tl.maximum(n, 0.0), tl.where(n > 0, 1.0, 0.0)
    else:
        values, slope = gelu_and_slope(n)
    return values, slope


@triton.jit
def forward_pyramid(
    x, weight1, bias1, weight2, bias2, weight3, bias3, y, rows, D: tl.constexpr, H1: tl.constexpr, H2: tl.constexpr,
    T: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_H1: tl.constexpr, BLOCK_H2: tl.constexpr, BLOCK_T: tl.constexpr,
    BLOCK_M: tl.constexpr, PRECISION: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """y of one tile of rows."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    real = row < rows
    w1 = matrix(weight1, H1, D, BLOCK_H1, BLOCK_D)
    w2 = matrix(weight2, H2, H1, BLOCK_H2, BLOCK_H1)
    w3 = matrix(weight3, T, H2, BLOCK_T, BLOCK_H2)
    a1 = active(affine(rows_of(x, row, real, D, BLOCK_D), w1, bias1, H1, BLOCK_H1, PRECISION), RELU)
    a2 = active(affine(a1, w2, bias2, H2, BLOCK_H2, PRECISION), RELU)
    out = affine(a2, w3, bias3, T, BLOCK_T, PRECISION)
    column = tl.arange(0, BLOCK_T)
    tl.store(y + row[:, None] * T + column[None, :], out, mask=real[:, None] & (column < T)[None, :])


@triton.jit
def backward_pyramid(
    gradient, x, weight1, bias1, weight2, bias2, weight3, bias3, gradient_x, gradient_weight1, gradient_bias1,
    gradient_weight2, gradient_bias2, gradient_weight3, gradient_bias3, rows, D: tl.constexpr, H1: tl.constexpr,
    H2: tl.constexpr, T: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_H1: tl.constexpr, BLOCK_H2: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_M: tl.constexpr, PRECISION: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """All gradients, tile after tile of rows; hidden values are recomputed."""
    w1 = matrix(weight1, H1, D, BLOCK_H1, BLOCK_D)
    w2 = matrix(weight2, H2, H1, BLOCK_H2, BLOCK_H1)
    w3 = matrix(weight3, T, H2, BLOCK_T, BLOCK_H2)
    gw1 = tl.zeros([BLOCK_H1, BLOCK_D], tl.float32)
    gw2 = tl.zeros([BLOCK_H2, BLOCK_H1], tl.float32)
    gw3 = tl.zeros([BLOCK_T, BLOCK_H2], tl.float32)
    gb1 = tl.zeros([BLOCK_H1], tl.float32)
    gb2 = tl.zeros([BLOCK_H2], tl.float32)
    gb3 = tl.zeros([BLOCK_T], tl.float32)
    for start in range(0, rows, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        real = row < rows
        values = rows_of(x, row, real, D, BLOCK_D)
        n1 = affine(values, w1, bias1, H1, BLOCK_H1, PRECISION)
        a1, slope1 = active_and_slope(n1, RELU)
        n2 = affine(a1, w2, bias2, H2, BLOCK_H2, PRECISION)
        a2, slope2 = active_and_slope(n2, RELU)
        g3 = rows_of(gradient, row, real, T, BLOCK_T)
        g2 = tl.dot(g3, w3, input_precision=PRECISION) * slope2
        g1 = tl.dot(g2, w2, input_precision=PRECISION) * slope1
        gx = tl.dot(g1, w1, input_precision=PRECISION)
        gw3 += tl.dot(tl.trans(g3), a2, input_precision=PRECISION)
        gw2 += tl.dot(tl.trans(g2), a1, input_precision=PRECISION)
        gw1 += tl.dot(tl.trans(g1), values, input_precision=PRECISION)
        gb3 += tl.sum(g3, axis=0)
        gb2 += tl.sum(g2, axis=0)
        gb1 += tl.sum(g1, axis=0)
        column = tl.arange(0, BLOCK_D)
        inside = real[:, None] & (column < D)[None, :]
        tl.store(gradient_x + row[:, None] * D + column[None, :], gx, mask=inside)
    store_matrix(gradient_weight1, gw1, H1, D, BLOCK_H1, BLOCK_D)
    store_matrix(gradient_weight2, gw2, H2, H1, BLOCK_H2, BLOCK_H1)
    store_matrix(gradient_weight3, gw3, T, H2, BLOCK_T, BLOCK_H2)
    tl.store(gradient_bias1 + tl.arange(0, BLOCK_H1), gb1, mask=tl.arange(0, BLOCK_H1) < H1)
    tl.store(gradient_bias2 + tl.arange(0, BLOCK_H2), gb2, mask=tl.arange(0, BLOCK_H2) < H2)
    tl.store(gradient_bias3 + tl.arange(0, BLOCK_T), gb3, mask=tl.arange(0, BLOCK_T) < T)
