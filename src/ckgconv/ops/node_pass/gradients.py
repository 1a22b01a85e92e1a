"""Gradients of the parameters of all blocks, from what the kernels of the node pass leave behind.

    ∂W = Σ_n g_n h_nᵀ        ∂b = Σ_n g_n

Both factors of each matrix's gradient are there for all blocks. A program owns a tile of one matrix and some of the
nodes: the library's products take one program for each matrix, and 50 µs for what are a few million operations.

Legend: L blocks, N nodes (a multiple of `PIECE`), D width, H hidden width, A and B channels of two factors, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.sums import summed

PIECE = 32  # nodes at once
SPAN = 128  # nodes of a program: with 1,024, ten programs took 0.35 ms of a ZINC step
TILE = 64  # channels of a program, of either factor


@triton.jit
def matrix_gradient(
    left,
    right,
    parts,
    bias_parts,
    part_stride,
    nodes,
    A: tl.constexpr,
    B: tl.constexpr,
    A_PITCH: tl.constexpr,
    B_PITCH: tl.constexpr,
    PRECISION: tl.constexpr,
    PIECE: tl.constexpr,
    SPAN: tl.constexpr,
    TILE: tl.constexpr,
):
    """Parts [L, A, B] of Σ g hᵀ and [L, A] of Σ g; rows of both factors are written, and finite, up to N."""
    layer, tile, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tiles = tl.cdiv(B, TILE)
    a = tile // tiles * TILE + tl.arange(0, TILE)
    b = tile % tiles * TILE + tl.arange(0, TILE)
    first = layer.to(tl.int64) * nodes
    total = tl.zeros([TILE, TILE], tl.float32)
    sums = tl.zeros([PIECE, TILE], tl.float32)
    for start in range(split * SPAN, tl.minimum((split + 1) * SPAN, nodes), PIECE):
        node = first + start + tl.arange(0, PIECE)
        g = tl.load(left + node[:, None] * A_PITCH + a[None, :], mask=(a < A_PITCH)[None, :], other=0.0)
        h = tl.load(right + node[:, None] * B_PITCH + b[None, :], mask=(b < B_PITCH)[None, :], other=0.0)
        total = tl.dot(tl.trans(g), h, total, input_precision=PRECISION)
        sums += g
    part = split.to(tl.int64) * part_stride
    inside = (a < A)[:, None] & (b < B)[None, :]
    tl.store(parts + part + layer * A * B + a[:, None] * B + b[None, :], total, mask=inside)
    if tile % tiles == 0:
        tl.store(bias_parts + part + layer * A + a, tl.sum(sums, axis=0), mask=a < A)


def field_gradients(
    sums: Tensor, sums_out: Tensor, narrow: Tensor, wide: Tensor, width: int, precision: str
) -> list[Tensor]:
    """Gradients in the order of the fields of each block.

    Args:
        sums, sums_out: [S, L, 4, D] and [S, L, 2, D], parts of sums over nodes.
        narrow, wide: factors of matrices' gradients, [4, L, N, D or more] and [2, L, N, H].
    """
    out_kept, u_kept, projected_kept, scaled_kept = narrow
    hidden_kept, gradient_hidden = wide
    (layers, rows, hidden), device = hidden_kept.shape, wide.device
    factors = [(projected_kept, scaled_kept), (gradient_hidden, u_kept), (out_kept, hidden_kept)]
    shapes = [(width, width), (hidden, width), (width, hidden)]
    sizes = [size for left, right in shapes for size in (layers * left * right, layers * left)]
    parts = torch.empty(-(-rows // SPAN), sum(sizes), device=device)
    places = parts.split(sizes, dim=1)
    for number, ((left, right), (a, b)) in enumerate(zip(factors, shapes, strict=True)):
        matrix_gradient[(layers, -(-a // TILE) * -(-b // TILE), len(parts))](
            left,
            right,
            places[2 * number],
            places[2 * number + 1],
            parts.stride(0),
            rows,
            A=a,
            B=b,
            A_PITCH=left.shape[2],
            B_PITCH=right.shape[2],
            PRECISION=precision,
            PIECE=PIECE,
            SPAN=SPAN,
            TILE=TILE,
            num_stages=3,
        )
    totals = summed(parts).split(sizes)
    weight, weight_in, weight_out = (
        total.view(layers, *shape) for total, shape in zip(totals[::2], shapes, strict=True)
    )
    bias, bias_in, bias_out = (total.view(layers, -1) for total in totals[1::2])
    gradients: list[Tensor] = []
    for number, (own, out) in enumerate(zip(summed(sums), summed(sums_out), strict=True)):
        shift, scale, theta1, theta2 = own.unbind(0)
        shift_out, scale_out = out.unbind(0)
        gradients += [theta1, theta2, weight[number], bias[number], scale, shift]
        gradients += [weight_in[number], bias_in[number], weight_out[number], bias_out[number], scale_out, shift_out]
    return gradients
