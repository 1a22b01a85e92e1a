"""Gradients of the parameters of all blocks, from the factors and sums that the node pass has written.

    ∂W = Σ_n g_n h_nᵀ        ∂b = Σ_n g_n

Both factors of each matrix's gradient are kept for all blocks. A program owns a tile of one matrix and some of the
nodes, and all matrices are one launch: cuBLAS uses one program and 50 µs for each matrix of a few million operations.
The launch is deferred until the stages of the pairs pass have ended: concurrent with them, which fill every SM, it cost
45 µs; before them, on the main stream, 25 µs.

Legend: L blocks, N nodes (a multiple of `PIECE`), D width, H hidden width, A and B channels of two factors, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from functools import partial
from math import prod
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.backends.cuda.node_pass.options import Settings
from ckgconv.ops.reductions import write_sums

PIECE = 32  # nodes of one product
SPAN, PARTS = 128, 256  # fewest nodes of a program, most programs that share a tile
TILE = 64  # channels of each factor in a program


@triton.jit
def some_rows(values, first, start, end, columns, PITCH: tl.constexpr, PIECE: tl.constexpr):
    """[PIECE, columns] of values, zeros from row `end` on."""
    row = start + tl.arange(0, PIECE)
    inside = (row < end)[:, None] & (columns < PITCH)[None, :]
    return tl.load(values + (first + row)[:, None] * PITCH + columns[None, :], mask=inside, other=0.0)


@triton.jit
def matrix_gradient(
    left, right, parts, bias_parts, part_stride, nodes, filled, tile, A: tl.constexpr, B: tl.constexpr,
    A_PITCH: tl.constexpr, B_PITCH: tl.constexpr, PRECISION: tl.constexpr, PIECE: tl.constexpr, SPAN: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Parts [L, A, B] of Σ g hᵀ and [L, A] of Σ g over the first `filled` of the N rows of each layer, all finite.

    The next rows are loaded into registers while the current ones are multiplied. The compiler's own pipeline would
    load four bytes at a time, already transposed for the product: that cost 28 µs for ZINC.
    """
    layer, split = tl.program_id(0), tl.program_id(2)
    tiles = tl.cdiv(B, TILE)
    a = tile // tiles * TILE + tl.arange(0, TILE)
    b = tile % tiles * TILE + tl.arange(0, TILE)
    first = layer.to(tl.int64) * nodes
    total = tl.zeros([TILE, TILE], tl.float32)
    sums = tl.zeros([PIECE, TILE], tl.float32)
    end = tl.minimum((split + 1) * SPAN, filled)
    g = some_rows(left, first, split * SPAN, end, a, A_PITCH, PIECE)
    h = some_rows(right, first, split * SPAN, end, b, B_PITCH, PIECE)
    for start in range(split * SPAN, end, PIECE):
        next_g = some_rows(left, first, start + PIECE, end, a, A_PITCH, PIECE)
        next_h = some_rows(right, first, start + PIECE, end, b, B_PITCH, PIECE)
        total = tl.dot(tl.trans(g), h, total, input_precision=PRECISION)
        sums += g
        g, h = next_g, next_h
    part = split.to(tl.int64) * part_stride
    inside = (a < A)[:, None] & (b < B)[None, :]
    tl.store(parts + part + layer * A * B + a[:, None] * B + b[None, :], total, mask=inside)
    if tile % tiles == 0:
        tl.store(bias_parts + part + layer * A + a, tl.sum(sums, axis=0), mask=a < A)


@triton.jit
def matrix_gradients(
    projected, scaled, gradient_hidden, u, out, hidden, weight, bias, weight_in, bias_in, weight_out, bias_out,
    part_stride, nodes, D: tl.constexpr, H: tl.constexpr, PITCH: tl.constexpr, SQUARE: tl.constexpr,
    OBLONG: tl.constexpr, PRECISION: tl.constexpr, PIECE: tl.constexpr, SPAN: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Of the three matrices of every block: the SQUARE tiles of W, then the OBLONG tiles of W₁ and of W₂."""
    tile = tl.program_id(1)
    if tile < SQUARE:
        matrix_gradient(
            projected, scaled, weight, bias, part_stride, nodes, nodes, tile, D, D, PITCH, PITCH, PRECISION, PIECE,
            SPAN, TILE,
        )  # fmt: skip
    elif tile < SQUARE + OBLONG:
        matrix_gradient(
            gradient_hidden, u, weight_in, bias_in, part_stride, nodes, nodes, tile - SQUARE, H, D, H, PITCH,
            PRECISION, PIECE, SPAN, TILE,
        )  # fmt: skip
    else:
        matrix_gradient(
            out, hidden, weight_out, bias_out, part_stride, nodes, nodes, tile - SQUARE - OBLONG, D, H, PITCH, H,
            PRECISION, PIECE, SPAN, TILE,
        )  # fmt: skip


class Factors(NamedTuple):
    """Both factors of each matrix's gradient, for all blocks."""

    narrow: Tensor  # [4, L, N, D or more] ∂ of the FFN's output, u, ∂ of the projection's output, its input
    wide: Tensor  # [2, L, N, H] hidden values and their gradients


def field_gradients(sums: Tensor, sums_out: Tensor, factors: Factors, width: int, settings: Settings) -> list[Tensor]:
    """Gradients in the order of the fields of each block, from sums [S, L, 4, D] and [S, L, 2, D] over nodes."""
    defer = settings.streams.defer
    layers, rows, inner = factors.wide.shape[1:]
    shapes = [(width, width), (width,), (inner, width), (inner,), (width, inner), (width,)]
    sizes = [layers * prod(shape) for shape in shapes]
    span = max(SPAN, -(-rows // (PARTS * PIECE)) * PIECE)
    parts = torch.empty(-(-rows // span), sum(sizes), dtype=torch.float32, device=sums.device)
    totals, own_sums, out_sums = (torch.empty_like(each[0]) for each in (parts, sums, sums_out))

    def products() -> None:
        launch_products(factors, parts, parts.split(sizes, dim=1), width, span, settings.precision)
        write_sums(parts, totals)

    # Nothing reads these gradients before the update.
    defer(products, parts, *factors, totals)
    defer(partial(write_sums, sums, own_sums), sums, own_sums)
    defer(partial(write_sums, sums_out, out_sums), sums_out, out_sums)
    matrices = [total.view(layers, *shape) for total, shape in zip(totals.split(sizes), shapes, strict=True)]
    gradients: list[Tensor] = []
    for number, (own, following) in enumerate(zip(own_sums, out_sums, strict=True)):
        weight, bias, *feed_forward = (matrix[number] for matrix in matrices)
        shift, scale, theta1, theta2 = own.unbind(0)
        shift_out, scale_out = following.unbind(0)
        gradients += [theta1, theta2, weight, bias, scale, shift, *feed_forward, scale_out, shift_out]
    return gradients


def launch_products(
    factors: Factors, parts: Tensor, views: tuple[Tensor, ...], width: int, span: int, precision: str
) -> None:
    """Parts of the gradients of all matrices and their biases, `span` nodes per program."""
    out, u, projected, scaled = factors.narrow
    hidden, gradient_hidden = factors.wide
    layers, rows, inner = hidden.shape
    square = (-(-width // TILE)) ** 2
    oblong = -(-width // TILE) * -(-inner // TILE)
    matrix_gradients[(layers, square + 2 * oblong, len(parts))](
        projected, scaled, gradient_hidden, u, out, hidden, *views, parts.stride(0), rows, D=width, H=inner,
        PITCH=factors.narrow.shape[3], SQUARE=square, OBLONG=oblong, PRECISION=precision, PIECE=PIECE, SPAN=span,
        TILE=TILE, num_stages=1,
    )  # fmt: skip
