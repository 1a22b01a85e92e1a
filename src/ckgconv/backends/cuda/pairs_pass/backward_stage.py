"""Triton kernel of one backward stage of the pairs pass.

    G = γ' ρ' ( g' - w/W Σg' - w/W ŷ Σ g'ŷ ) + G'        gradient at y, through the norm that reads it
    ∂W = Σ drop(G)ᵀ act     ∂b = Σ drop(G)
    g = (drop(G) W) ⊙ act'  gradient at the output of the norm of x, with its sums Σg = ∂β and Σ g x̂ = ∂γ

The first stage writes γρ g + G₁ instead of g, where G₁ is the gradient through the residual sum: `input_gradient` then
reads half as much. Where x depends on no parameter, its gradient is not computed.

Legend: L groups, R rows, K channels in, D channels out, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.pairs_pass.row_kernels import dropped, normalised, row_weights
from ckgconv.ops.tiles import (
    TINY,
    gelu_and_slope,
    group_start,
    half_gelu_and_slope,
    read_moments,
    read_sums,
    rounded_norm,
)


@triton.jit
def backward_stage(
    g, g_sums, g_stride, g_count, y, y_moments, y_scale, carry, x, x_stride, x_moments, scale, shift, linear, gx,
    gx_sums, linear_parts, bias_parts, part_stride, group_stride, gx_stride, row_weight, filled, R, seed, draw,
    threshold, factor, dropped_rows, epsilon, splits, K: tl.constexpr, D: tl.constexpr, K_PITCH: tl.constexpr,
    D_PITCH: tl.constexpr, WEIGHTED: tl.constexpr, ACT: tl.constexpr, THROUGH_NORM: tl.constexpr,
    PLAIN: tl.constexpr, ADD_CARRY: tl.constexpr, WRITE_CARRY: tl.constexpr, CLEAR: tl.constexpr,
    FIRST: tl.constexpr, JOIN: tl.constexpr, DROP: tl.constexpr, SPARES: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Gradients of one group from every `splits`-th tile of rows.

    PLAIN: the bias has no gradient. CLEAR: padding gets zeros. FIRST, JOIN: γρ g + G₁ is written in place of g.
    """
    storage = g.dtype.element_ty
    LOW: tl.constexpr = storage != tl.float32
    group, split = tl.program_id(0), tl.program_id(1)
    groups = tl.num_programs(0)
    rows = tl.load(filled).to(tl.int32)
    inner, outer = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_D)
    if THROUGH_NORM:
        total_y, mean_y, variance_y = read_moments(y_moments + group * D, groups * D, D, outer)
        root_y = 1.0 / tl.sqrt(variance_y + epsilon)
        slope_y = tl.load(y_scale + group * D + outer, mask=outer < D, other=0.0) * root_y
        # G = slope g + w (constant + factor y).
        sum_y = read_sums(g_sums + group * D, g_count, g_stride, D, outer, PARTS)
        sum_gy = read_sums(g_sums + groups * D + group * D, g_count, g_stride, D, outer, PARTS)
        factor_y = -slope_y * root_y * sum_gy / tl.maximum(total_y, TINY)
        constant = -slope_y * sum_y / tl.maximum(total_y, TINY) - mean_y * factor_y
    _, mean, variance = read_moments(x_moments + group * K, groups * K, K, inner)
    root = 1.0 / tl.sqrt(variance + epsilon)
    gamma = tl.load(scale + group * K + inner, mask=inner < K, other=0.0)
    beta = tl.load(shift + group * K + inner, mask=inner < K, other=0.0)
    cell = outer[:, None] * K + inner[None, :]
    real_cell = (outer < D)[:, None] & (inner < K)[None, :]
    # The matrix, and the sums at the end, absorb the factor of the dropout.
    scaled = 1.0
    if DROP and not SPARES:
        scaled = factor
    matrix = (tl.load(linear + group * D * K + cell, mask=real_cell, other=0.0) * scaled).to(storage)
    g += group_start(group, group_stride)
    y += group_start(group, group_stride)
    carry += group_start(group, group_stride)
    x += group_start(group, x_stride)
    if gx is not None:
        gx += group_start(group, gx_stride)
    seed_value = tl.load(seed) + draw * groups + group
    gradient_linear = tl.zeros([BLOCK_D, BLOCK_K], tl.float32)
    # Summed over tiles first: the rows of one tile are held by different threads.
    gradient_bias = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    sum_g = tl.zeros([BLOCK_R, BLOCK_K], tl.float32)
    sum_gx = tl.zeros([BLOCK_R, BLOCK_K], tl.float32)
    slope_x = gamma * root
    moved = beta - mean * slope_x
    slope16, moved16 = rounded_norm(slope_x, beta, mean)
    for start in range(split * BLOCK_R, rows, splits * BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        real = row < rows
        target = row[:, None] * D_PITCH + outer[None, :]
        inside = real[:, None] & (outer < D_PITCH)[None, :]
        pull = tl.load(g + target, mask=inside, other=0.0).to(tl.float32)
        if THROUGH_NORM:
            shared = tl.load(y + target, mask=inside, other=0.0).to(tl.float32) * factor_y[None, :] + constant[None, :]
            if WEIGHTED:
                shared *= row_weights(row_weight, row, real, WEIGHTED)[:, None]
            pull = tl.where(real[:, None], pull * slope_y[None, :] + shared, 0.0)
        if D_PITCH > D:
            # The incoming gradient may be uninitialised between the channels and the pitch.
            pull = tl.where((outer < D)[None, :], pull, 0.0)
        if ADD_CARRY:
            pull += tl.load(carry + target, mask=inside, other=0.0).to(tl.float32)
        if WRITE_CARRY:
            tl.store(carry + target, pull.to(storage), mask=inside)
        if DROP:
            pull = dropped(pull, seed_value, row, threshold, factor, dropped_rows, SPARES, BLOCK_R, BLOCK_D)
        if not PLAIN:
            gradient_bias += pull
        pulled = pull.to(storage)
        place = row[:, None] * K_PITCH + inner[None, :]
        there = real[:, None] & (inner < K_PITCH)[None, :]
        values = tl.load(x + place, mask=there, other=0.0)
        active = normalised(values, slope_x, moved, slope16, moved16, LOW)
        back = tl.dot(pulled, matrix, input_precision=PRECISION)
        if ACT:
            active, slope = half_gelu_and_slope(active, back) if LOW else gelu_and_slope(active)
            back = back * slope.to(tl.float32)
        gradient_linear = tl.dot(tl.trans(pulled), active.to(storage), gradient_linear, input_precision=PRECISION)
        sum_g += back
        sum_gx += back * values.to(tl.float32)
        if FIRST:
            back = back * slope_x[None, :]
        if JOIN:
            # Rounded first, so that the sum is taken in the layout of the store: else the layout would change twice.
            passing = tl.load(carry + place, mask=there, other=0.0).to(tl.float32)
            tl.store(gx + place, (back.to(storage).to(tl.float32) + passing).to(storage), mask=there)
        elif gx is not None:
            tl.store(gx + place, back.to(storage), mask=there)
    if CLEAR:
        # Zeros in padding: sums over all rows may follow.
        for start in range(rows + split * BLOCK_R, R, splits * BLOCK_R):
            row = start + tl.arange(0, BLOCK_R)
            inside = (row < R)[:, None] & (outer < D_PITCH)[None, :]
            target = row[:, None] * D_PITCH + outer[None, :]
            tl.store(carry + target, tl.zeros([BLOCK_R, BLOCK_D], carry.dtype.element_ty), mask=inside)
    parts = split * part_stride
    tl.store(linear_parts + parts + group * D * K + cell, gradient_linear * scaled, mask=real_cell)
    if not PLAIN:
        tl.store(bias_parts + parts + group * D + outer, tl.sum(gradient_bias, axis=0) * scaled, mask=outer < D)
    else:
        tl.store(bias_parts + parts + group * D + outer, tl.zeros([BLOCK_D], tl.float32), mask=outer < D)
    total_g = tl.sum(sum_g, axis=0)
    total_gx = (tl.sum(sum_gx, axis=0) - mean * total_g) * root
    tl.store(gx_sums + parts + group * K + inner, total_g, mask=inner < K)
    tl.store(gx_sums + parts + groups * K + group * K + inner, total_gx, mask=inner < K)
