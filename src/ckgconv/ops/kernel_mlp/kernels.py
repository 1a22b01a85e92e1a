"""Triton kernels of the pairs pass: one forward and one backward per stage of the chain, and the gradient of its input.

Forward stage       y = r + drop( act(γ x̂ + β) Wᵀ + b ),  and the moments of y
Backward stage      G = γ' ρ' ( g' - w/W Σg' - w/W ŷ Σ g'ŷ ) + G'        gradient at y, through the norm that reads it
                    ∂W = Σ drop(G)ᵀ act     ∂b = Σ drop(G)
                    g = (drop(G) W) ⊙ act'  gradient behind the norm of x, with its sums Σg = ∂β and Σ g x̂ = ∂γ
Input gradient      ∂x = Σ_l γ_l ρ ( g_l - w/W Σg_l - w/W x̂ Σ g_l x̂ ) + G_l

A program owns one group and every S-th tile of its rows: W stays on chip, and sums over rows leave as S parts that the
next kernel adds up, in a fixed order. So no sum needs a launch of its own, and runs repeat bit for bit. W is loaded
before the launch in front has ended.

Rows of a tensor lie `pitch` entries apart, and what lies between the channels and the pitch is zero everywhere.

Legend: L groups, R rows, K channels in, D channels out, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.ops.parts import (
    TINY,
    gelu,
    gelu_and_slope,
    group_start,
    kept,
    merge_moments,
    read_moments,
    read_parts,
    read_sums,
    tile_moments,
    track,
    wait_for_last,
    write_moments,
    write_parts,
)


@triton.jit
def row_weights(row_weight, row, real, WEIGHTED: tl.constexpr):
    """[BLOCK_R] weights of rows; every real row counts once where none are given."""
    if WEIGHTED:
        return tl.load(row_weight + row, mask=real, other=0.0).to(tl.float32)
    else:
        return real.to(tl.float32)


@triton.jit
def dropped(
    values,
    seed,
    row,
    threshold,
    factor,
    dropped_rows,
    SPARES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Dropout of a tile [ROWS, COLUMNS]; where it SPARES some, rows from `dropped_rows` on stay as they are."""
    result = tl.where(kept(seed, row, threshold, ROWS, COLUMNS), values * factor, 0.0)
    if SPARES:
        result = tl.where((row < dropped_rows)[:, None], result, values)
    return result


@triton.jit
def row_moments(
    x,
    parts,
    row_weight,
    filled,
    splits,
    K: tl.constexpr,
    PITCH: tl.constexpr,
    WEIGHTED: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Parts [3, S, K] of the moments of x [R, K]."""
    split = tl.program_id(0)
    rows = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_K)
    total = 0.0
    mean = tl.zeros([BLOCK_K], tl.float32)
    squares = tl.zeros([BLOCK_K], tl.float32)
    for start in range(split * BLOCK_R, rows, splits * BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        real = row < rows
        weight = row_weights(row_weight, row, real, WEIGHTED)
        place = row[:, None] * PITCH + columns[None, :]
        values = tl.load(x + place, mask=real[:, None] & (columns < PITCH)[None, :], other=0.0).to(tl.float32)
        more, more_mean, more_squares = tile_moments(values, weight)
        total, mean, squares = merge_moments(total, mean, squares, more, more_mean, more_squares)
    write_parts(parts + split * K, splits * K, K, columns, total, mean, squares)


@triton.jit
def forward_stage(
    x,
    x_stride,
    parts,
    parts_stride,
    parts_plane,
    moments,
    running_mean,
    running_variance,
    momentum,
    scale,
    shift,
    linear,
    bias,
    residual,
    residual_stride,
    y,
    y_stride,
    y_parts,
    origin,
    row_weight,
    filled,
    seed,
    draw,
    threshold,
    factor,
    dropped_rows,
    epsilon,
    splits,
    K: tl.constexpr,
    D: tl.constexpr,
    K_PITCH: tl.constexpr,
    D_PITCH: tl.constexpr,
    WEIGHTED: tl.constexpr,
    ACT: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    DROP: tl.constexpr,
    SPARES: tl.constexpr,
    GIVEN: tl.constexpr,
    TRACK: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PARTS: tl.constexpr,
    EARLY: tl.constexpr,
):
    group, split = tl.program_id(0), tl.program_id(1)
    groups = tl.num_programs(0)
    inner, outer = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_D)
    storage = y.dtype.element_ty
    gamma = tl.load(scale + group * K + inner, mask=inner < K, other=0.0)
    beta = tl.load(shift + group * K + inner, mask=inner < K, other=0.0)
    cell = outer[None, :] * K + inner[:, None]
    real_cell = (inner < K)[:, None] & (outer < D)[None, :]
    matrix = tl.load(linear + group * D * K + cell, mask=real_cell, other=0.0).to(storage)
    offset = tl.zeros([BLOCK_D], tl.float32)
    if BIAS:
        offset = tl.load(bias + group * D + outer, mask=outer < D, other=0.0)
    wait_for_last(EARLY)
    rows = tl.load(filled).to(tl.int32)
    if GIVEN:
        mean = tl.load(running_mean + group * K + inner, mask=inner < K, other=0.0)
        variance = tl.load(running_variance + group * K + inner, mask=inner < K, other=1.0)
    else:
        total, mean, variance = read_parts(parts + group * parts_stride, parts_plane, splits, K, inner, PARTS)
        if split == 0:
            write_moments(moments + group * K, groups * K, K, inner, total, mean, variance)
            place = group * K
            track(running_mean + place, running_variance + place, momentum, K, inner, total, mean, variance)
    slope = gamma / tl.sqrt(variance + epsilon)
    moved = beta - mean * slope
    x += group_start(group, x_stride)
    y += group_start(group, y_stride)
    residual += group_start(group, residual_stride)
    seed_value = tl.load(seed) + draw * groups + group
    total_y = 0.0
    if TRACK:
        # Sums of squares around a value near the mean lose no digits.
        around = tl.load(origin + group * D + outer, mask=outer < D, other=0.0)
    sums = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    squares = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(split * BLOCK_R, rows, splits * BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        real = row < rows
        place = row[:, None] * K_PITCH + inner[None, :]
        values = tl.load(x + place, mask=real[:, None] & (inner < K_PITCH)[None, :], other=0.0).to(tl.float32)
        active = values * slope[None, :] + moved[None, :]
        if ACT:
            active = gelu(active, storage == tl.bfloat16)
        out = tl.dot(active.to(storage), matrix, input_precision=PRECISION) + offset[None, :]
        if DROP:
            out = dropped(out, seed_value, row, threshold, factor, dropped_rows, SPARES, BLOCK_R, BLOCK_D)
        target = row[:, None] * D_PITCH + outer[None, :]
        inside = real[:, None] & (outer < D_PITCH)[None, :]
        if RESIDUAL:
            out += tl.load(residual + target, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + target, out.to(storage), mask=inside)
        if TRACK:
            centred = tl.where(real[:, None], out - around[None, :], 0.0)
            weighted = centred
            if WEIGHTED:
                weight = row_weights(row_weight, row, real, WEIGHTED)
                total_y += tl.sum(weight, axis=0)
                weighted = centred * weight[:, None]
            else:
                total_y += tl.minimum(rows - start, BLOCK_R).to(tl.float32)
            sums += weighted
            squares += weighted * centred
    if TRACK:
        offset_y = tl.sum(sums, axis=0) / tl.maximum(total_y, TINY)
        squares_y = tl.maximum(tl.sum(squares, axis=0) - offset_y * offset_y * total_y, 0.0)
        part = y_parts + (group * splits + split) * D
        write_parts(part, groups * splits * D, D, outer, total_y, around + offset_y, squares_y)


@triton.jit
def backward_stage(
    g,
    g_sums,
    y,
    y_moments,
    y_scale,
    carry,
    x,
    x_stride,
    x_moments,
    scale,
    shift,
    linear,
    gx,
    gx_sums,
    linear_parts,
    bias_parts,
    part_stride,
    group_stride,
    gx_stride,
    row_weight,
    filled,
    seed,
    draw,
    threshold,
    factor,
    dropped_rows,
    epsilon,
    splits,
    K: tl.constexpr,
    D: tl.constexpr,
    K_PITCH: tl.constexpr,
    D_PITCH: tl.constexpr,
    WEIGHTED: tl.constexpr,
    ACT: tl.constexpr,
    THROUGH_NORM: tl.constexpr,
    PLAIN: tl.constexpr,
    ADD_CARRY: tl.constexpr,
    WRITE_CARRY: tl.constexpr,
    DROP: tl.constexpr,
    SPARES: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PARTS: tl.constexpr,
    EARLY: tl.constexpr,
):
    group, split = tl.program_id(0), tl.program_id(1)
    groups = tl.num_programs(0)
    inner, outer = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_D)
    storage = gx.dtype.element_ty
    gamma = tl.load(scale + group * K + inner, mask=inner < K, other=0.0)
    beta = tl.load(shift + group * K + inner, mask=inner < K, other=0.0)
    cell = outer[:, None] * K + inner[None, :]
    real_cell = (outer < D)[:, None] & (inner < K)[None, :]
    matrix = tl.load(linear + group * D * K + cell, mask=real_cell, other=0.0).to(storage)
    wait_for_last(EARLY)
    rows = tl.load(filled).to(tl.int32)
    if THROUGH_NORM:
        total_y, mean_y, variance_y = read_moments(y_moments + group * D, groups * D, D, outer)
        root_y = 1.0 / tl.sqrt(variance_y + epsilon)
        slope_y = tl.load(y_scale + group * D + outer, mask=outer < D, other=0.0) * root_y
        # G = slope g + w (constant + factor y).
        sum_y = read_sums(g_sums + group * D, splits, part_stride, D, outer, PARTS)
        sum_gy = read_sums(g_sums + groups * D + group * D, splits, part_stride, D, outer, PARTS)
        factor_y = -slope_y * root_y * sum_gy / tl.maximum(total_y, TINY)
        constant = -slope_y * sum_y / tl.maximum(total_y, TINY) - mean_y * factor_y
    _, mean, variance = read_moments(x_moments + group * K, groups * K, K, inner)
    root = 1.0 / tl.sqrt(variance + epsilon)
    g += group_start(group, group_stride)
    y += group_start(group, group_stride)
    carry += group_start(group, group_stride)
    x += group_start(group, x_stride)
    gx += group_start(group, gx_stride)
    seed_value = tl.load(seed) + draw * groups + group
    gradient_linear = tl.zeros([BLOCK_D, BLOCK_K], tl.float32)
    # Summed over tiles first: the rows of one tile lie in different threads.
    gradient_bias = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    sum_g = tl.zeros([BLOCK_R, BLOCK_K], tl.float32)
    sum_gx = tl.zeros([BLOCK_R, BLOCK_K], tl.float32)
    slope_x = gamma * root
    moved = beta - mean * slope_x
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
            # Whoever wrote the gradient of the output may have left something behind the channels.
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
        values = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
        active = values * slope_x[None, :] + moved[None, :]
        back = tl.dot(pulled, matrix, input_precision=PRECISION)
        if ACT:
            active, slope = gelu_and_slope(active, back, storage == tl.bfloat16)
            back = back * slope
        gradient_linear = tl.dot(tl.trans(pulled), active.to(storage), gradient_linear, input_precision=PRECISION)
        tl.store(gx + place, back.to(storage), mask=there)
        sum_g += back
        sum_gx += back * values
    parts = split * part_stride
    tl.store(linear_parts + parts + group * D * K + cell, gradient_linear, mask=real_cell)
    if not PLAIN:
        tl.store(bias_parts + parts + group * D + outer, tl.sum(gradient_bias, axis=0), mask=outer < D)
    else:
        tl.store(bias_parts + parts + group * D + outer, tl.zeros([BLOCK_D], tl.float32), mask=outer < D)
    total_g = tl.sum(sum_g, axis=0)
    total_gx = (tl.sum(sum_gx, axis=0) - mean * total_g) * root
    tl.store(gx_sums + parts + group * K + inner, total_g, mask=inner < K)
    tl.store(gx_sums + parts + groups * K + group * K + inner, total_gx, mask=inner < K)


@triton.jit
def input_gradient(
    g,
    g_sums,
    carry,
    x,
    moments,
    scale,
    gx,
    group_stride,
    row_weight,
    filled,
    epsilon,
    R,
    groups,
    K: tl.constexpr,
    PITCH: tl.constexpr,
    WEIGHTED: tl.constexpr,
    CARRY: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    rows = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_K)
    row = tile * BLOCK_R + tl.arange(0, BLOCK_R)
    place = row[:, None] * PITCH + columns[None, :]
    there = (row < rows)[:, None] & (columns < PITCH)[None, :]
    pull = tl.zeros([BLOCK_R, BLOCK_K], tl.float32)
    passed = tl.zeros([BLOCK_R, BLOCK_K], tl.float32)
    sum_g = tl.zeros([BLOCK_K], tl.float32)
    sum_gx = tl.zeros([BLOCK_K], tl.float32)
    if tile * BLOCK_R < rows:
        for group in range(groups):
            gamma = tl.load(scale + group * K + columns, mask=columns < K, other=0.0)
            start = group_start(group, group_stride)
            pull += gamma[None, :] * tl.load(g + start + place, mask=there, other=0.0).to(tl.float32)
            if CARRY:
                passed += tl.load(carry + start + place, mask=there, other=0.0).to(tl.float32)
            sum_g += gamma * tl.load(g_sums + group * K + columns, mask=columns < K, other=0.0)
            sum_gx += gamma * tl.load(g_sums + (groups + group) * K + columns, mask=columns < K, other=0.0)
        total, mean, variance = read_moments(moments, groups * K, K, columns)
        root = 1.0 / tl.sqrt(variance + epsilon)
        weight = row_weights(row_weight, row, row < rows, WEIGHTED)
        share = weight[:, None] / tl.maximum(total, TINY)[None, :]
        standard = (tl.load(x + place, mask=there, other=0.0).to(tl.float32) - mean[None, :]) * root[None, :]
        passed += (pull - share * (sum_g[None, :] + standard * sum_gx[None, :])) * root[None, :]
    # Rows beyond the filled ones get zeros: sums over all rows may follow.
    tl.store(gx + place, passed, mask=(row < R)[:, None] & (columns < PITCH)[None, :])
