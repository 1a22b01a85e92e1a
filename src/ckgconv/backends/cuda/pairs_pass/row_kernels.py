"""Triton kernels before and after the stages of the pairs pass, for the input's moments and gradient, and shared code.

Input gradient      ∂x = Σ_l ( γ_l ρ g_l + G_l ) - ρ w/W Σ_l γ_l ( Σg_l + x̂ Σ g_l x̂ )

In a stage (`forward_stage`, `backward_stage`) a program owns one group and every S-th tile of its rows: W stays in
shared memory or registers, and sums over rows are written as S parts that the next launch sums in a fixed order. So no
sum needs a launch of its own, and runs repeat bit for bit. Starting a launch before the previous stage has ended gains
nothing here: a stage fills every SM.

Rows of a tensor lie `pitch` entries apart, and entries between the channels and the pitch are zero everywhere.

Legend: L groups, R rows, K channels in, D channels out, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.ops.tiles import (
    TINY,
    group_start,
    kept,
    merge_tile,
    no_moments,
    read_moments,
    row_cells,
    saturated,
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
def normalised(values, slope, moved, slope16, moved16, LOW: tl.constexpr):
    """slope x + moved of a tile, in float16 where storage is LOW; x of float16 is scaled in float16 as well."""
    if values.dtype == tl.float16:
        return values * slope16[None, :] + moved16[None, :]
    else:
        normal = values * slope[None, :] + moved[None, :]
        return saturated(normal) if LOW else normal


@triton.jit
def dropped(
    values, seed, row, threshold, factor, dropped_rows, SPARES: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Dropout of a tile [ROWS, COLUMNS] without its factor, which the caller's matrix absorbs.

    Where it SPARES some rows, those from `dropped_rows` on are unchanged, and the factor is applied here to the others.
    """
    staying = kept(seed, row, threshold, ROWS, COLUMNS)
    if SPARES:
        return tl.where((row < dropped_rows)[:, None], tl.where(staying, values * factor, 0.0), values)
    else:
        return tl.where(staying, values, 0.0)


@triton.jit
def row_moments(
    x, parts, row_weight, filled, splits, K: tl.constexpr, PITCH: tl.constexpr, WEIGHTED: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Parts [3, S, K] of the moments of x [R, K]."""
    split = tl.program_id(0)
    rows = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_K)
    total, mean, squares = no_moments(BLOCK_K)
    for start in range(split * BLOCK_R, rows, splits * BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        real = row < rows
        weight = row_weights(row_weight, row, real, WEIGHTED)
        place, there = row_cells(row, real, columns, PITCH)
        values = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
        total, mean, squares = merge_tile(total, mean, squares, values, weight)
    write_parts(parts + split * K, splits * K, K, columns, total, mean, squares)


@triton.jit
def input_gradient(
    g, g_sums, x, moments, scale, gx, group_stride, row_weight, filled, epsilon, R, groups, K: tl.constexpr,
    PITCH: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """∂x of one tile from g [L, R, K], which is γρ g + G here, and the sums [2, L, K]."""
    tile = tl.program_id(0)
    rows = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_K)
    row = tile * BLOCK_R + tl.arange(0, BLOCK_R)
    place, there = row_cells(row, row < rows, columns, PITCH)
    passed = tl.zeros([BLOCK_R, BLOCK_K], tl.float32)
    sum_g = tl.zeros([BLOCK_K], tl.float32)
    sum_gx = tl.zeros([BLOCK_K], tl.float32)
    if tile * BLOCK_R < rows:
        for group in range(groups):
            gamma = tl.load(scale + group * K + columns, mask=columns < K, other=0.0)
            start = group_start(group, group_stride)
            passed += tl.load(g + start + place, mask=there, other=0.0).to(tl.float32)
            sum_g += gamma * tl.load(g_sums + group * K + columns, mask=columns < K, other=0.0)
            sum_gx += gamma * tl.load(g_sums + (groups + group) * K + columns, mask=columns < K, other=0.0)
        total, mean, variance = read_moments(moments, groups * K, K, columns)
        root = 1.0 / tl.sqrt(variance + epsilon)
        weight = row_weights(row_weight, row, row < rows, WEIGHTED)
        share = weight[:, None] / tl.maximum(total, TINY)[None, :]
        standard = (tl.load(x + place, mask=there, other=0.0).to(tl.float32) - mean[None, :]) * root[None, :]
        passed -= share * (sum_g[None, :] + standard * sum_gx[None, :]) * root[None, :]
    # Zeros in padding: sums over all rows may follow.
    tl.store(gx + place, passed, mask=(row < R)[:, None] & (columns < PITCH)[None, :])
