"""Triton kernels of the feed-forward network that ends a block, between two norms.

    u = BN(t), or BN(t) + BN(s) where attention runs next to the layer
    d = drop(ReLU(W₁ u + b₁))        v = u + drop(W₂ d + b₂)        and the moments of v

    ∂o = drop(G)        ∂n = W₂ᵀ ∂o ⊙ [d > 0]        ∂u = G + W₁ᵀ ∂n

with G the gradient at v through the norm that reads it.

A program owns one tile of nodes. u, d, ∂o and ∂n are kept: products of them are the gradients of both matrices.

Legend: N nodes, D width, H hidden width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.node_pass.backward_kernels import hidden_weights, through_norm
from ckgconv.backends.cuda.node_pass.forward_kernels import dropped, hidden_matrices
from ckgconv.backends.cuda.node_pass.norm import read_norm
from ckgconv.ops.tiles import kept_at, read_moments, row_tile, tile_moments, write_parts, write_two_sums


@triton.jit
def normed(
    t, parts, moments, running_mean, running_variance, momentum, scale, shift, target, inside, nodes, splits, columns,
    epsilon, D: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """BN(t) of a tile of nodes, zeros in padding; the first program keeps the moments and moves running statistics."""
    mean, slope = read_norm(
        parts, moments, running_mean, running_variance, momentum, scale, splits, nodes, D, columns, epsilon, False,
        False, PARTS, ROWS,
    )  # fmt: skip
    offset = tl.load(shift + columns, mask=columns < D, other=0.0)
    values = tl.load(t + target, mask=inside, other=0.0)
    return tl.where(inside, (values - mean[None, :]) * slope[None, :] + offset[None, :], 0.0)


@triton.jit
def write_tile_moments(parts, part, values, real, inside, columns, splits, D: tl.constexpr):
    """The moments of a tile as that part of `splits`."""
    total, mean, squares = tile_moments(tl.where(inside, values, 0.0), real.to(tl.float32))
    write_parts(parts + part * D, splits * D, D, columns, total, mean, squares)


@triton.jit
def write_norm_sums(sums, part, stride, pull, v, moments, target, inside, columns, epsilon, D: tl.constexpr):
    """That part of Σg and Σ g v̂, of a tile whose gradient `pull` is zero in padding."""
    _, mean, variance = read_moments(moments, D, D, columns)
    standard = (tl.load(v + target, mask=inside, other=0.0) - mean[None, :]) / tl.sqrt(variance + epsilon)[None, :]
    write_two_sums(sums + part * stride, D, columns, tl.sum(pull, axis=0), tl.sum(pull * standard, axis=0))


@triton.jit
def forward_ffn(
    t, t_parts, t_moments, t_mean, t_variance, t_scale, t_shift, s, s_parts, s_moments, s_mean, s_variance, s_scale,
    s_shift, momentum, linear_in, bias_in, linear_out, bias_out, u_kept, hidden_kept, v, v_parts, filled, seed, draw,
    level, factor, epsilon, D: tl.constexpr, H: tl.constexpr, splits, TWO: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_H: tl.constexpr,
    HIDDEN: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """HIDDEN is the smallest tile that holds a row of hidden values: masks count in such rows."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    u = normed(
        t, t_parts, t_moments, t_mean, t_variance, momentum, t_scale, t_shift, target, inside, nodes, splits, columns,
        epsilon, D, PARTS, BLOCK_N,
    )  # fmt: skip
    if TWO:
        u += normed(
            s, s_parts, s_moments, s_mean, s_variance, momentum, s_scale, s_shift, target, inside, nodes, splits,
            columns, epsilon, D, PARTS, BLOCK_N,
        )  # fmt: skip
    tl.store(u_kept + target, u, mask=inside)
    out = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    for hidden in range(0, H, BLOCK_H):
        inner = hidden + tl.arange(0, BLOCK_H)
        matrix_in, matrix_out = hidden_matrices(linear_in, linear_out, inner, columns, D, H)
        n = tl.dot(u, matrix_in, input_precision=PRECISION)
        d = tl.maximum(n + tl.load(bias_in + inner, mask=inner < H, other=0.0)[None, :], 0.0)
        if DROP:
            place = node[:, None] * HIDDEN + inner[None, :]
            d = tl.where(kept_at(tl.load(seed) + draw, place, level), d * factor, 0.0)
        there = real[:, None] & (inner < H)[None, :]
        tl.store(hidden_kept + node[:, None] * H + inner[None, :], d, mask=there)
        out = tl.dot(d, matrix_out, out, input_precision=PRECISION)
    out += tl.load(bias_out + columns, mask=columns < D, other=0.0)[None, :]
    if DROP:
        out = dropped(out, tl.load(seed) + draw + 1, node, level, factor, BLOCK_N, BLOCK_D)
    out += u
    tl.store(v + target, out, mask=inside)
    write_tile_moments(v_parts, tl.program_id(0), out, real, inside, columns, splits, D)


@triton.jit
def backward_ffn(
    g, v, v_moments, v_scale, v_sums, v_stride, v_splits, hidden_kept, linear_in, linear_out, gradient_out,
    gradient_hidden, gu, t, t_moments, t_sums, s, s_moments, s_sums, part_stride, filled, seed, draw, level, factor,
    epsilon, D: tl.constexpr, H: tl.constexpr, TWO: tl.constexpr, DROP: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_H: tl.constexpr, V_PARTS: tl.constexpr,
):  # fmt: skip
    """∂u, and its sums behind the norms of t and of s."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    pull = through_norm(
        g, v, v_moments, v_scale, v_sums, v_stride, target, inside, columns, D, v_splits, epsilon, V_PARTS
    )
    passed = pull
    if DROP:
        pull = dropped(pull, tl.load(seed) + draw + 1, node, level, factor, BLOCK_N, BLOCK_D)
    tl.store(gradient_out + target, pull, mask=inside)
    for hidden in range(0, H, BLOCK_H):
        inner = hidden + tl.arange(0, BLOCK_H)
        matrix_in, matrix_out = hidden_weights(linear_in, linear_out, inner, columns, D, H)
        there = real[:, None] & (inner < H)[None, :]
        place = node[:, None] * H + inner[None, :]
        d = tl.load(hidden_kept + place, mask=there, other=0.0)
        back = tl.dot(pull, matrix_out, input_precision=PRECISION)
        if DROP:
            back *= factor
        # A value that was dropped is zero, as one that ReLU has cut.
        back = tl.where(d > 0, back, 0.0)
        tl.store(gradient_hidden + place, back, mask=there)
        passed = tl.dot(back, matrix_in, passed, input_precision=PRECISION)
    tl.store(gu + target, passed, mask=inside)
    passed = tl.where(inside, passed, 0.0)
    part = tl.program_id(0)
    write_norm_sums(t_sums, part, part_stride, passed, t, t_moments, target, inside, columns, epsilon, D)
    if TWO:
        write_norm_sums(s_sums, part, part_stride, passed, s, s_moments, target, inside, columns, epsilon, D)
