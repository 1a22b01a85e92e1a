"""Triton kernels of a GINE layer with its residual sum, from the norm that ends the previous block on.

    x = BN(v)                       of the previous block, applied as v is read
    s_i = (1 + ε) x_i + Σ_j ReLU(x_j + e_ij)        a = ReLU(M₁ s + c₁)        m = M₂ a + c₂
    t = x + drop(ReLU(m))           or x + drop(m)                                              and the moments of t

    ∂m = drop(G) ⊙ [m > 0]          ∂z = M₂ᵀ ∂m ⊙ [a > 0]        ∂s = M₁ᵀ ∂z        G gradient at t through its norm
    ∂x_j = G_j + (1 + ε) ∂s_j + Σ_i ∂s_i ⊙ [x_j + e_ij > 0]      ∂e_ij = ∂s_i ⊙ [x_j + e_ij > 0], summed over blocks

A program owns one tile of nodes; edges lie in the order of their receivers. Where attention runs next to the layer, as
in GPS, the first launch also projects x to queries, keys and values; `forward_output` is w = x + drop(O y + b) of what
the attention returned, y; and G is the sum of the gradients at t and at w.

Legend: N nodes, E edges, D width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.block_pass.feed_forward import write_norm_sums, write_tile_moments
from ckgconv.backends.cuda.node_pass.backward_kernels import known_norm, through_norm
from ckgconv.backends.cuda.node_pass.forward_kernels import dropped, node_rows, senders
from ckgconv.backends.cuda.node_pass.norm import read_norm
from ckgconv.ops.tiles import row_tile


@triton.jit
def transposed(weight, columns, D: tl.constexpr):
    """Wᵀ [D, D] of a square matrix."""
    real = columns < D
    cell = columns[None, :] * D + columns[:, None]
    return tl.load(weight + cell, mask=real[:, None] & real[None, :], other=0.0)


@triton.jit
def square(weight, columns, D: tl.constexpr):
    """W [D, D]."""
    real = columns < D
    cell = columns[:, None] * D + columns[None, :]
    return tl.load(weight + cell, mask=real[:, None] & real[None, :], other=0.0)


@triton.jit
def list_of(pointer, node, real):
    """Where the edges of each node of a tile begin, and how many there are."""
    begin = tl.load(pointer + node, mask=real, other=0).to(tl.int32)
    return begin, tl.load(pointer + node + 1, mask=real, other=0).to(tl.int32) - begin


@triton.jit
def forward_gine(
    v, v_parts, v_moments, v_mean, v_variance, v_scale, v_shift, momentum, edges, pointer, sender, share, weight1,
    bias1, weight2, bias2, s_kept, a_kept, m_kept, t, t_parts, projection, projection_bias, qkv, x_kept, filled, seed,
    draw, level, factor, epsilon, D: tl.constexpr, splits, NORM: tl.constexpr, ACTIVE: tl.constexpr,
    DROP: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, BLOCK_D: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    """t, and queries, keys and values where a `projection` [3 D, D] to them is given."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    own = tl.load(v + target, mask=inside, other=0.0)
    if NORM:
        mean, slope = read_norm(
            v_parts, v_moments, v_mean, v_variance, momentum, v_scale, splits, nodes, D, columns, epsilon, False,
            False, PARTS, BLOCK_N,
        )  # fmt: skip
        moved = tl.load(v_shift + columns, mask=columns < D, other=0.0) - mean * slope
        own = tl.where(inside, own * slope[None, :] + moved[None, :], 0.0)
    begin, length = list_of(pointer, node, real)
    received = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
    for chunk in range(0, tl.max(length, axis=0), CHUNK):
        place = chunk + tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        values = node_rows(v, senders(sender, begin, length, place), stored, columns, D)
        if NORM:
            values = values * slope[None, None, :] + moved[None, None, :]
        values += node_rows(edges, begin[:, None] + place[None, :], stored, columns, D)
        received += tl.where(stored[:, :, None], tl.maximum(values, 0.0), 0.0)
    summed = (1.0 + tl.load(share)) * own + tl.sum(received, axis=1)
    tl.store(s_kept + target, summed, mask=inside)
    z = tl.dot(summed, transposed(weight1, columns, D), input_precision=PRECISION)
    active = tl.maximum(z + tl.load(bias1 + columns, mask=columns < D, other=0.0)[None, :], 0.0)
    tl.store(a_kept + target, active, mask=inside)
    out = tl.dot(active, transposed(weight2, columns, D), input_precision=PRECISION)
    out += tl.load(bias2 + columns, mask=columns < D, other=0.0)[None, :]
    if ACTIVE:
        tl.store(m_kept + target, out, mask=inside)
        out = tl.maximum(out, 0.0)
    if DROP:
        out = dropped(out, tl.load(seed) + draw, node, level, factor, BLOCK_N, BLOCK_D)
    out += own
    tl.store(t + target, out, mask=inside)
    write_tile_moments(t_parts, tl.program_id(0), out, real, inside, columns, splits, D)
    if projection is not None:
        tl.store(x_kept + target, own, mask=inside)
        for third in tl.static_range(3):
            out = tl.dot(own, transposed(projection + third * D * D, columns, D), input_precision=PRECISION)
            out += tl.load(projection_bias + third * D + columns, mask=columns < D, other=0.0)[None, :]
            tl.store(qkv + node[:, None] * (3 * D) + third * D + columns[None, :], out, mask=inside)


@triton.jit
def forward_output(
    y, x, weight, bias, w, w_parts, filled, seed, draw, level, factor, epsilon, D: tl.constexpr, splits,
    DROP: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """w, and its moments."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    values = tl.load(y + target, mask=inside, other=0.0)
    out = tl.dot(values, transposed(weight, columns, D), input_precision=PRECISION)
    out += tl.load(bias + columns, mask=columns < D, other=0.0)[None, :]
    if DROP:
        out = dropped(out, tl.load(seed) + draw, node, level, factor, BLOCK_N, BLOCK_D)
    out += tl.load(x + target, mask=inside, other=0.0)
    tl.store(w + target, out, mask=inside)
    write_tile_moments(w_parts, tl.program_id(0), out, real, inside, columns, splits, D)


@triton.jit
def backward_gine(
    g, t, t_moments, t_scale, t_sums, part_stride, splits, m_kept, a_kept, weight1, weight2, residual, gradient_m,
    gradient_z, gs, w, w_moments, w_scale, w_sums, weight_y, gradient_w, gy, filled, seed, draw, level, factor,
    epsilon, D: tl.constexpr, ACTIVE: tl.constexpr, DROP: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """G, the gradients of the MLP and, where attention's w is given, those of its output."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, _, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    pull = through_norm(
        g, t, t_moments, t_scale, t_sums, part_stride, target, inside, columns, D, splits, epsilon, PARTS
    )
    passed = pull
    if w is not None:
        back = through_norm(
            g, w, w_moments, w_scale, w_sums, part_stride, target, inside, columns, D, splits, epsilon, PARTS
        )
        passed += back
        if DROP:
            # Masks of a block: layer, attention weights, attention.
            back = dropped(back, tl.load(seed) + draw + 2, node, level, factor, BLOCK_N, BLOCK_D)
        tl.store(gradient_w + target, back, mask=inside)
        tl.store(gy + target, tl.dot(back, square(weight_y, columns, D), input_precision=PRECISION), mask=inside)
    tl.store(residual + target, passed, mask=inside)
    if DROP:
        pull = dropped(pull, tl.load(seed) + draw, node, level, factor, BLOCK_N, BLOCK_D)
    if ACTIVE:
        pull = tl.where(tl.load(m_kept + target, mask=inside, other=0.0) > 0, pull, 0.0)
    tl.store(gradient_m + target, pull, mask=inside)
    back = tl.dot(pull, square(weight2, columns, D), input_precision=PRECISION)
    back = tl.where(tl.load(a_kept + target, mask=inside, other=0.0) > 0, back, 0.0)
    tl.store(gradient_z + target, back, mask=inside)
    tl.store(gs + target, tl.dot(back, square(weight1, columns, D), input_precision=PRECISION), mask=inside)


@triton.jit
def backward_rectified(
    gs, residual, share, edges, ge, sender_ptr, sender_rows, sender_receiver, v, v_moments, v_scale, v_shift, v_sums,
    part_stride, projection, gqkv, gx, filled, epsilon, N, D: tl.constexpr, NORM: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂x of a tile of senders, its sums behind the norm of v, and ∂e of their edges, which nobody else owns.

    Where a `projection` is given, ∂x includes what comes back through queries, keys and values.
    """
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    own = tl.load(v + target, mask=inside, other=0.0)
    if NORM:
        mean, root, gamma, offset = known_norm(v_moments, v_scale, v_shift, columns, epsilon, D)
        own = own * (root * gamma)[None, :] + (offset - mean * root * gamma)[None, :]
    begin, length = list_of(sender_ptr, node, real)
    collected = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
    for chunk in range(0, tl.max(length, axis=0), CHUNK):
        place = chunk + tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        row, other = senders(sender_rows, begin, length, place), senders(sender_receiver, begin, length, place)
        passes = own[:, None, :] + node_rows(edges, row, stored, columns, D) > 0
        pulled = tl.where(passes, node_rows(gs, other, stored, columns, D), 0.0)
        cells = row[:, :, None] * D + columns[None, None, :]
        there = stored[:, :, None] & (columns < D)[None, None, :]
        tl.store(ge + cells, tl.load(ge + cells, mask=there, other=0.0) + pulled, mask=there)
        collected += pulled
    passed = tl.load(residual + target, mask=inside, other=0.0) + tl.sum(collected, axis=1)
    passed += (1.0 + tl.load(share)) * tl.load(gs + target, mask=inside, other=0.0)
    if projection is not None:
        for third in tl.static_range(3):
            pulled = tl.load(gqkv + node[:, None] * (3 * D) + third * D + columns[None, :], mask=inside, other=0.0)
            matrix = square(projection + third * D * D, columns, D)
            passed = tl.dot(pulled, matrix, passed, input_precision=PRECISION)
    passed = tl.where(inside, passed, 0.0)
    # Zero in padding: sums over all N rows may follow.
    tl.store(gx + target, passed, mask=(node < N)[:, None] & (columns < D)[None, :])
    if NORM:
        part = tl.program_id(0)
        write_norm_sums(v_sums, part, part_stride, passed, v, v_moments, target, inside, columns, epsilon, D)
