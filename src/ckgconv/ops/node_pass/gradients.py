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
SPAN = 1024  # nodes of a program
TILE = 64  # channels of a program, of either factor


@triton.jit
def matrix_gradient(
    left,
    right,
    parts,
    bias_parts,
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
    """Parts [S, L, A, B] of Σ g hᵀ and [S, L, A] of Σ g; rows of both factors are written, and finite, up to N."""
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
    part = (split * tl.num_programs(0) + layer).to(tl.int64)
    inside = (a < A)[:, None] & (b < B)[None, :]
    tl.store(parts + part * A * B + a[:, None] * B + b[None, :], total, mask=inside)
    if tile % tiles == 0:
        tl.store(bias_parts + part * A + a, tl.sum(sums, axis=0), mask=a < A)


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
    hidden = wide.shape[3]
    weight, bias = _products(projected_kept, scaled_kept, (width, width), precision)
    weight_in, bias_in = _products(gradient_hidden, u_kept, (hidden, width), precision)
    weight_out, bias_out = _products(out_kept, hidden_kept, (width, hidden), precision)
    gradients: list[Tensor] = []
    for number, (own, out) in enumerate(zip(summed(sums), summed(sums_out), strict=True)):
        shift, scale, theta1, theta2 = own.unbind(0)
        shift_out, scale_out = out.unbind(0)
        gradients += [theta1, theta2, weight[number], bias[number], scale, shift]
        gradients += [weight_in[number], bias_in[number], weight_out[number], bias_out[number], scale_out, shift_out]
    return gradients


def _products(left: Tensor, right: Tensor, shape: tuple[int, int], precision: str) -> tuple[Tensor, Tensor]:
    """Σ_n left_n right_nᵀ [L, A, B] and Σ_n left_n [L, A], from [L, N, A or more] and [L, N, B or more]."""
    (layers, nodes, wide), narrow = left.shape, right.shape[2]
    splits, tiles = -(-nodes // SPAN), -(-shape[0] // TILE) * -(-shape[1] // TILE)
    parts = torch.empty(splits, layers, *shape, device=left.device)
    bias_parts = torch.empty(splits, layers, shape[0], device=left.device)
    matrix_gradient[(layers, tiles, splits)](
        left,
        right,
        parts,
        bias_parts,
        nodes,
        A=shape[0],
        B=shape[1],
        A_PITCH=wide,
        B_PITCH=narrow,
        PRECISION=precision,
        PIECE=PIECE,
        SPAN=SPAN,
        TILE=TILE,
        num_stages=3,
    )
    return (parts[0], bias_parts[0]) if splits == 1 else (summed(parts), summed(bias_parts))
