"""Triton kernel of one forward stage of the pairs pass.

    y = r + drop( act(γ x̂ + β) Wᵀ + b ),  and the moments of y

Legend: L groups, R rows, K channels in, D channels out, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.pairs_pass.row_kernels import dropped, normalised, row_weights
from ckgconv.ops.tiles import (
    TINY,
    gelu,
    group_start,
    read_parts,
    rounded_norm,
    saturated,
    track,
    twice_gelu,
    write_moments,
    write_parts,
)


@triton.jit
def forward_stage(
    x, x_stride, parts, parts_stride, parts_plane, moments, running_mean, running_variance, momentum, scale, shift,
    linear, bias, residual, residual_stride, y, y_stride, y_parts, origin, row_weight, filled, seed, draw, threshold,
    factor, dropped_rows, epsilon, count, splits, K: tl.constexpr, D: tl.constexpr, K_PITCH: tl.constexpr,
    D_PITCH: tl.constexpr, WEIGHTED: tl.constexpr, ACT: tl.constexpr, BIAS: tl.constexpr, RESIDUAL: tl.constexpr,
    DROP: tl.constexpr, SPARES: tl.constexpr, GIVEN: tl.constexpr, TRACK: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """y of one group and every `splits`-th tile of rows; the first program of a group also writes the moments of x."""
    group, split = tl.program_id(0), tl.program_id(1)
    groups = tl.num_programs(0)
    rows = tl.load(filled).to(tl.int32)
    inner, outer = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_D)
    if GIVEN:
        mean = tl.load(running_mean + group * K + inner, mask=inner < K, other=0.0)
        variance = tl.load(running_variance + group * K + inner, mask=inner < K, other=1.0)
    else:
        total, mean, variance = read_parts(parts + group * parts_stride, parts_plane, count, K, inner, PARTS)
        if split == 0:
            write_moments(moments + group * K, groups * K, K, inner, total, mean, variance)
            place = group * K
            track(running_mean + place, running_variance + place, momentum, K, inner, total, mean, variance)
    gamma = tl.load(scale + group * K + inner, mask=inner < K, other=0.0)
    beta = tl.load(shift + group * K + inner, mask=inner < K, other=0.0)
    # The expression of the backward pass, to the last digit, which matters in float16.
    slope = gamma * (1.0 / tl.sqrt(variance + epsilon))
    moved = beta - mean * slope
    storage = y.dtype.element_ty
    LOW: tl.constexpr = storage != tl.float32
    slope16, moved16 = rounded_norm(slope, beta, mean)
    cell = outer[None, :] * K + inner[:, None]
    real_cell = (inner < K)[:, None] & (outer < D)[None, :]
    # The matrix absorbs the factor of the following dropout and the ½ of GELU: each saves a multiplication per entry.
    scaled = 1.0
    if DROP and not SPARES:
        scaled = factor
    matrix = tl.load(linear + group * D * K + cell, mask=real_cell, other=0.0) * scaled
    if LOW:
        matrix = (matrix * (0.5 if ACT else 1.0)).to(tl.float16)
    offset = tl.zeros([BLOCK_D], tl.float32)
    if BIAS:
        offset = tl.load(bias + group * D + outer, mask=outer < D, other=0.0) * scaled
    x += group_start(group, x_stride)
    y += group_start(group, y_stride)
    residual += group_start(group, residual_stride)
    seed_value = tl.load(seed) + draw * groups + group
    total_y = 0.0
    if TRACK:
        # Sums of squares around a value near the mean, here the running mean, lose no digits.
        around = tl.load(origin + group * D + outer, mask=outer < D, other=0.0)
    sums = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    squares = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(split * BLOCK_R, rows, splits * BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        real = row < rows
        place = row[:, None] * K_PITCH + inner[None, :]
        values = tl.load(x + place, mask=real[:, None] & (inner < K_PITCH)[None, :], other=0.0)
        active = normalised(values, slope, moved, slope16, moved16, LOW)
        if ACT:
            active = twice_gelu(active) if LOW else gelu(active)
        out = tl.dot(active, matrix, input_precision=PRECISION) + offset[None, :]
        if DROP:
            out = dropped(out, seed_value, row, threshold, factor, dropped_rows, SPARES, BLOCK_R, BLOCK_D)
        target = row[:, None] * D_PITCH + outer[None, :]
        inside = real[:, None] & (outer < D_PITCH)[None, :]
        if RESIDUAL:
            out += tl.load(residual + target, mask=inside, other=0.0).to(tl.float32)
        if storage == tl.float16:
            tl.store(y + target, saturated(out), mask=inside)
        else:
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
