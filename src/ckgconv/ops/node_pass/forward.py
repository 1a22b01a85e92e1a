"""Triton kernels of the node pass, forward: two per block.

forward_convolution   y = 1/|supp| Σ x_j ⊙ ψ_ij;  t = x + drop( W (y ⊙ (θ₁ + √d θ₂)) + b )         and the moments of t
forward_ffn           u = BN(t);  v = u + drop( W₂ GELU(W₁ u + b₁) + b₂ )                          and the moments of v

At 740 nodes a launch is all latency, so a kernel ends only where the statistics of all nodes are needed. x of a block
is never written: it is BN(v) of the block before, applied as it is read.

Legend: N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.ops.parts import (
    gelu,
    kept,
    merge_moments,
    read_parts,
    read_plain_parts,
    tile_moments,
    track,
    write_moments,
    write_parts,
)


@triton.jit
def read_norm(
    parts,
    moments,
    running_mean,
    running_variance,
    momentum,
    scale,
    splits,
    rows,
    D: tl.constexpr,
    columns,
    epsilon,
    GIVEN: tl.constexpr,
    WEIGHTED: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """μ and slope γ/√(σ² + ε) of a norm; the first program writes its moments down where they are new."""
    gamma = tl.load(scale + columns, mask=columns < D, other=0.0)
    if GIVEN:
        mean = tl.load(running_mean + columns, mask=columns < D, other=0.0)
        variance = tl.load(running_variance + columns, mask=columns < D, other=1.0)
    else:
        if WEIGHTED:
            total, mean, variance = read_parts(parts, splits * D, splits, D, columns, PARTS)
        else:
            total, mean, variance = read_plain_parts(parts, splits * D, splits, rows, D, columns, PARTS, ROWS)
        if tl.program_id(0) == 0:
            write_moments(moments, D, D, columns, total, mean, variance)
            track(running_mean, running_variance, momentum, D, columns, total, mean, variance)
    return mean, gamma / tl.sqrt(variance + epsilon)


@triton.jit
def dropped(values, seed, rows, level, factor, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.where(kept(seed, rows, level, ROWS, COLUMNS), values * factor, 0.0)


@triton.jit
def forward_convolution(
    v,
    v_parts,
    v_moments,
    running_mean,
    running_variance,
    momentum,
    v_scale,
    v_shift,
    psi,
    rowptr,
    sender,
    support_size,
    degree,
    theta1,
    theta2,
    linear,
    bias,
    y,
    t,
    t_parts,
    filled,
    seed,
    draw,
    level,
    factor,
    epsilon,
    D: tl.constexpr,
    splits,
    PITCH: tl.constexpr,
    NORM: tl.constexpr,
    GIVEN: tl.constexpr,
    TRACK: tl.constexpr,
    DROP: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PARTS: tl.constexpr,
):
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    real_column = columns < D
    first = tl.load(theta1 + columns, mask=real_column, other=0.0)
    second = tl.load(theta2 + columns, mask=real_column, other=0.0)
    cell = columns[None, :] * D + columns[:, None]
    matrix = tl.load(linear + cell, mask=real_column[:, None] & real_column[None, :], other=0.0)
    added = tl.load(bias + columns, mask=real_column, other=0.0)
    # Behind the weights: nothing is loaded ahead of the reductions in here.
    if NORM:
        offset = tl.load(v_shift + columns, mask=real_column, other=0.0)
        mean, slope = read_norm(
            v_parts,
            v_moments,
            running_mean,
            running_variance,
            momentum,
            v_scale,
            splits,
            nodes,
            D,
            columns,
            epsilon,
            GIVEN,
            False,
            PARTS,
            BLOCK_N,
        )
        moved = offset - mean * slope
    total_t = 0.0
    mean_t = tl.zeros([BLOCK_D], tl.float32)
    squares_t = tl.zeros([BLOCK_D], tl.float32)
    for start in range(split * BLOCK_N, nodes, splits * BLOCK_N):
        node = start + tl.arange(0, BLOCK_N)
        real = node < nodes
        begin = tl.load(rowptr + node, mask=real, other=0).to(tl.int32)
        length = tl.load(rowptr + node + 1, mask=real, other=0).to(tl.int32) - begin
        # Summed over chunks first: the senders of one chunk lie in different threads.
        products = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
        place = tl.arange(0, CHUNK)
        # Who sends is read one chunk ahead, so that only one load waits for another.
        following = tl.load(sender + begin[:, None] + place[None, :], mask=place[None, :] < length[:, None], other=0)
        for chunk in range(0, tl.max(length, axis=0), CHUNK):
            place = chunk + tl.arange(0, CHUNK)
            stored = place[None, :] < length[:, None]
            row = begin[:, None] + place[None, :]
            other = following.to(tl.int32)
            following = tl.load(sender + row + CHUNK, mask=place[None, :] + CHUNK < length[:, None], other=0)
            there = stored[:, :, None] & real_column[None, None, :]
            lies = stored[:, :, None] & (columns < PITCH)[None, None, :]
            cells = row[:, :, None] * PITCH + columns[None, None, :]
            kernel = tl.load(psi + cells, mask=lies, other=0.0).to(tl.float32)
            values = tl.load(v + other[:, :, None] * D + columns[None, None, :], mask=there, other=0.0)
            if NORM:
                values = values * slope[None, None, :] + moved[None, None, :]
            products += kernel * values
        size = tl.load(support_size + node, mask=real, other=1.0)
        root = tl.sqrt(tl.load(degree + node, mask=real, other=0.0))
        summed = tl.sum(products, axis=1) / tl.maximum(size, 1.0)[:, None]
        inside = real[:, None] & real_column[None, :]
        target = node[:, None] * D + columns[None, :]
        tl.store(y + target, summed, mask=inside)
        scaled = summed * (first[None, :] + root[:, None] * second[None, :])
        out = tl.dot(scaled, matrix, input_precision=PRECISION) + added[None, :]
        if DROP:
            out = dropped(out, tl.load(seed) + draw, node, level, factor, BLOCK_N, BLOCK_D)
        own = tl.load(v + target, mask=inside, other=0.0)
        if NORM:
            own = own * slope[None, :] + moved[None, :]
        out += own
        tl.store(t + target, out, mask=inside)
        if TRACK:
            more, more_mean, more_squares = tile_moments(tl.where(inside, out, 0.0), real.to(tl.float32))
            total_t, mean_t, squares_t = merge_moments(total_t, mean_t, squares_t, more, more_mean, more_squares)
    if TRACK:
        write_parts(t_parts + split * D, splits * D, D, columns, total_t, mean_t, squares_t)


@triton.jit
def forward_ffn(
    t,
    t_parts,
    t_moments,
    running_mean,
    running_variance,
    momentum,
    scale,
    shift,
    linear_in,
    bias_in,
    linear_out,
    bias_out,
    v,
    v_parts,
    filled,
    seed,
    draw,
    level,
    factor,
    epsilon,
    D: tl.constexpr,
    H: tl.constexpr,
    splits,
    GIVEN: tl.constexpr,
    TRACK: tl.constexpr,
    DROP: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_H: tl.constexpr,
    PARTS: tl.constexpr,
):
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    real_column = columns < D
    offset = tl.load(shift + columns, mask=real_column, other=0.0)
    added = tl.load(bias_out + columns, mask=real_column, other=0.0)
    mean, slope = read_norm(
        t_parts,
        t_moments,
        running_mean,
        running_variance,
        momentum,
        scale,
        splits,
        nodes,
        D,
        columns,
        epsilon,
        GIVEN,
        False,
        PARTS,
        BLOCK_N,
    )
    total_v = 0.0
    mean_v = tl.zeros([BLOCK_D], tl.float32)
    squares_v = tl.zeros([BLOCK_D], tl.float32)
    for start in range(split * BLOCK_N, nodes, splits * BLOCK_N):
        node = start + tl.arange(0, BLOCK_N)
        real = node < nodes
        inside = real[:, None] & real_column[None, :]
        target = node[:, None] * D + columns[None, :]
        values = tl.load(t + target, mask=inside, other=0.0)
        u = tl.where(inside, (values - mean[None, :]) * slope[None, :] + offset[None, :], 0.0)
        out = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
        for hidden in range(0, H, BLOCK_H):
            inner = hidden + tl.arange(0, BLOCK_H)
            cell = inner[None, :] * D + columns[:, None]
            there = (inner < H)[None, :] & real_column[:, None]
            matrix = tl.load(linear_in + cell, mask=there, other=0.0)
            n = tl.dot(u, matrix, input_precision=PRECISION)
            n += tl.load(bias_in + inner, mask=inner < H, other=0.0)[None, :]
            cell = columns[None, :] * H + inner[:, None]
            there = (inner < H)[:, None] & real_column[None, :]
            matrix = tl.load(linear_out + cell, mask=there, other=0.0)
            out = tl.dot(gelu(n, False), matrix, out, input_precision=PRECISION)
        out += added[None, :]
        if DROP:
            out = dropped(out, tl.load(seed) + draw, node, level, factor, BLOCK_N, BLOCK_D)
        out += u
        tl.store(v + target, out, mask=inside)
        if TRACK:
            more, more_mean, more_squares = tile_moments(tl.where(inside, out, 0.0), real.to(tl.float32))
            total_v, mean_v, squares_v = merge_moments(total_v, mean_v, squares_v, more, more_mean, more_squares)
    if TRACK:
        write_parts(v_parts + split * D, splits * D, D, columns, total_v, mean_v, squares_v)


@triton.jit
def apply_norm(
    v,
    v_parts,
    v_moments,
    running_mean,
    running_variance,
    momentum,
    scale,
    shift,
    x,
    filled,
    epsilon,
    N,
    D: tl.constexpr,
    splits,
    GIVEN: tl.constexpr,
    WEIGHTED: tl.constexpr,
    TILE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PARTS: tl.constexpr,
):
    """x = BN(v); zero in rows beyond the filled ones."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    offset = tl.load(shift + columns, mask=columns < D, other=0.0)
    mean, slope = read_norm(
        v_parts,
        v_moments,
        running_mean,
        running_variance,
        momentum,
        scale,
        splits,
        nodes,
        D,
        columns,
        epsilon,
        GIVEN,
        WEIGHTED,
        PARTS,
        TILE,
    )
    for start in range(tl.program_id(0) * BLOCK_N, N, tl.num_programs(0) * BLOCK_N):
        node = start + tl.arange(0, BLOCK_N)
        target = node[:, None] * D + columns[None, :]
        inside = (node < nodes)[:, None] & (columns < D)[None, :]
        values = tl.load(v + target, mask=inside, other=0.0)
        values = tl.where(inside, (values - mean[None, :]) * slope[None, :] + offset[None, :], 0.0)
        tl.store(x + target, values, mask=(node < N)[:, None] & (columns < D)[None, :])
