"""Triton kernel of one forward stage of the pairs pass.

    y = r + drop( act(γ x̂ + β) Wᵀ + b ),  and the moments of y

Whole tiles, and the one at the end that is not, are compiled apart: masks are a tenth of a stage's instructions.

Legend: L groups, R rows, K channels in, D channels out, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.ops.kernel_mlp.kernels import cells, dropped, row_weights
from ckgconv.ops.parts import (
    TINY,
    gelu,
    group_start,
    read_parts,
    track,
    wait_for_last,
    write_moments,
    write_parts,
)


@triton.jit
def forward_tile(
    x,
    y,
    residual,
    row_weight,
    slope,
    moved,
    matrix,
    offset,
    around,
    seed_value,
    threshold,
    factor,
    dropped_rows,
    start,
    rows,
    sums,
    squares,
    K_PITCH: tl.constexpr,
    D_PITCH: tl.constexpr,
    WEIGHTED: tl.constexpr,
    ACT: tl.constexpr,
    RESIDUAL: tl.constexpr,
    DROP: tl.constexpr,
    SPARES: tl.constexpr,
    TRACK: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_D: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """y of some rows; the weight of the tile, and its sums and squares around a value added to the others'."""
    row = start + tl.arange(0, BLOCK_R)
    inner, outer = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_D)
    place, there = cells(row, inner, rows, K_PITCH, WHOLE)
    values = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
    active = values * slope[None, :] + moved[None, :]
    storage = y.dtype.element_ty
    if ACT:
        active = gelu(active, storage == tl.bfloat16)
    out = tl.dot(active.to(storage), matrix, input_precision=PRECISION) + offset[None, :]
    if DROP:
        out = dropped(out, seed_value, row, threshold, factor, dropped_rows, SPARES, BLOCK_R, BLOCK_D)
    target, inside = cells(row, outer, rows, D_PITCH, WHOLE)
    if RESIDUAL:
        out += tl.load(residual + target, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + target, out.to(storage), mask=inside)
    total = tl.minimum(rows - start, BLOCK_R).to(tl.float32)
    if TRACK:
        centred = out - around[None, :]
        if not WHOLE:
            centred = tl.where((row < rows)[:, None], centred, 0.0)
        weighted = centred
        if WEIGHTED:
            weight = row_weights(row_weight, row, row < rows, WEIGHTED)
            total = tl.sum(weight, axis=0)
            weighted = centred * weight[:, None]
        sums += weighted
        squares += weighted * centred
    return total, sums, squares


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
    around = offset
    if TRACK:
        # Sums of squares around a value near the mean lose no digits.
        around = tl.load(origin + group * D + outer, mask=outer < D, other=0.0)
    sums = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    squares = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    whole = rows // BLOCK_R * BLOCK_R
    for start in range(split * BLOCK_R, whole, splits * BLOCK_R):
        weight, sums, squares = forward_tile(
            x,
            y,
            residual,
            row_weight,
            slope,
            moved,
            matrix,
            offset,
            around,
            seed_value,
            threshold,
            factor,
            dropped_rows,
            start,
            rows,
            sums,
            squares,
            K_PITCH,
            D_PITCH,
            WEIGHTED,
            ACT,
            RESIDUAL,
            DROP,
            SPARES,
            TRACK,
            PRECISION,
            BLOCK_R,
            BLOCK_K,
            BLOCK_D,
            WHOLE=True,
        )
        total_y += weight
    total_sums, total_squares = tl.sum(sums, axis=0), tl.sum(squares, axis=0)
    if (whole < rows) & (whole // BLOCK_R % splits == split):
        # Loaded again, rather than kept in registers through the loop.
        matrix = tl.load(linear + group * D * K + cell, mask=real_cell, other=0.0).to(storage)
        weight, more, more_squares = forward_tile(
            x,
            y,
            residual,
            row_weight,
            slope,
            moved,
            matrix,
            offset,
            around,
            seed_value,
            threshold,
            factor,
            dropped_rows,
            whole,
            rows,
            tl.zeros([BLOCK_R, BLOCK_D], tl.float32),
            tl.zeros([BLOCK_R, BLOCK_D], tl.float32),
            K_PITCH,
            D_PITCH,
            WEIGHTED,
            ACT,
            RESIDUAL,
            DROP,
            SPARES,
            TRACK,
            PRECISION,
            BLOCK_R,
            BLOCK_K,
            BLOCK_D,
            WHOLE=False,
        )
        total_y += weight
        total_sums += tl.sum(more, axis=0)
        total_squares += tl.sum(more_squares, axis=0)
    if TRACK:
        offset_y = total_sums / tl.maximum(total_y, TINY)
        squares_y = tl.maximum(total_squares - offset_y * offset_y * total_y, 0.0)
        part = y_parts + (group * splits + split) * D
        write_parts(part, groups * splits * D, D, outer, total_y, around + offset_y, squares_y)
