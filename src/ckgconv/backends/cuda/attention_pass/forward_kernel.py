"""Triton kernels of the attention pass forward.

    e    = BN(z)                                                       as an affine map, where z has a norm
    ê    = ReLU(ρ((q_i + k_j) ⊙ (W e + b)) + U e + b')
    w    = exp clamp(A · ê, ±c)                                         bounded, so no largest score is subtracted
    Σ_j w drop(v_j) / Σ_j w,   Σ_j w drop(ê_ij) / Σ_j w                 what the nodes receive
    z'   = e + O drop(ê) + b''                                          the next state, with the moments of its norm

A program owns every S-th receiver, whose rows are contiguous, and reads each of them once. Sums over the channels of
a head are products with a matrix that has ones inside each head: every channel then holds the sum of its head.

Legend: N nodes, P pairs, D width, H heads, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.ops.tiles import TINY, kept, kept_at, read_parts, saturated, track, write_moments, write_parts


@triton.jit
def same_head(columns, D: tl.constexpr, CHANNELS: tl.constexpr):
    """[D, D] whether two channels belong to one head of CHANNELS channels."""
    head = tl.where(columns < D, columns // CHANNELS, -1)
    return (head[:, None] == head[None, :]) & (columns < D)[:, None] & (columns < D)[None, :]


@triton.jit
def read_pair_matrix(weight, shift, inner, outer, D: tl.constexpr, CHANNELS: tl.constexpr):
    """[inner, outer] W (shift 0) or U (shift CHANNELS): of each head W and U lie one after the other."""
    row = outer // CHANNELS * (2 * CHANNELS) + outer % CHANNELS + shift
    inside = (inner < D)[:, None] & (outer < D)[None, :]
    return tl.load(weight + row[None, :] * D + inner[:, None], mask=inside, other=0.0)


@triton.jit
def read_pair_bias(bias, shift, columns, D: tl.constexpr, CHANNELS: tl.constexpr):
    """[D] the bias of W or U."""
    row = columns // CHANNELS * (2 * CHANNELS) + columns % CHANNELS + shift
    return tl.load(bias + row, mask=columns < D, other=0.0)


@triton.jit
def read_rows(x, row, real, columns, D: tl.constexpr):
    """[R, D] float32 of the given rows of a matrix without gaps."""
    inside = real[:, None] & (columns < D)[None, :]
    return tl.load(x + row[:, None] * D + columns[None, :], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def read_row(x, row, columns, D: tl.constexpr):
    """[D] float32."""
    return tl.load(x + row * D + columns, mask=columns < D, other=0.0).to(tl.float32)


@triton.jit
def rounded_to(values, LOW: tl.constexpr):
    """Operands of a product: float16 where storage has 16 bits."""
    if LOW:
        return saturated(values)
    else:
        return values


@triton.jit
def normed(z, norm, columns, real, D: tl.constexpr, NORMED: tl.constexpr):
    """e [R, D] from the stored rows of z."""
    values = z.to(tl.float32)
    if NORMED:
        slope = tl.load(norm + columns, mask=columns < D, other=0.0)
        offset = tl.load(norm + D + columns, mask=columns < D, other=0.0)
        values = tl.where(real[:, None], values * slope[None, :] + offset[None, :], 0.0)
    return values


@triton.jit
def head_factors(seed, row, columns, threshold, factor, HEADS: tl.constexpr, CHANNELS: tl.constexpr):
    """[R, D] 0 or the factor that keeps the expectation, the same for all channels of a head."""
    place = row[:, None] * HEADS + (columns // CHANNELS)[None, :]
    return tl.where(kept_at(seed, place, threshold), factor, 0.0)


@triton.jit
def attend(
    z, norm, q, k, v, rowptr, sender, filled, pair_weight, pair_bias, score, out_weight, out_bias, values, states,
    totals, z_next, origin, parts, N, seed, threshold, factor, state_threshold, state_factor, clamp, splits,
    D: tl.constexpr, HEADS: tl.constexpr, PITCH: tl.constexpr, NORMED: tl.constexpr, DROP: tl.constexpr,
    DROP_STATE: tl.constexpr, TRACK: tl.constexpr, PRECISION: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """What every `splits`-th receiver reads, and the next state of its pairs."""
    CHANNELS: tl.constexpr = D // HEADS
    LOW: tl.constexpr = z.dtype.element_ty != tl.float32
    split = tl.program_id(0)
    rows = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    scale_matrix = rounded_to(read_pair_matrix(pair_weight, 0, columns, columns, D, CHANNELS), LOW)
    shift_matrix = rounded_to(read_pair_matrix(pair_weight, CHANNELS, columns, columns, D, CHANNELS), LOW)
    scale_bias = read_pair_bias(pair_bias, 0, columns, D, CHANNELS)
    shift_bias = read_pair_bias(pair_bias, CHANNELS, columns, D, CHANNELS)
    vector = tl.load(score + columns, mask=columns < D, other=0.0)
    score_matrix = rounded_to(tl.where(same_head(columns, D, CHANNELS), vector[:, None], 0.0), LOW)
    cell = columns[None, :] * D + columns[:, None]
    real_cell = (columns < D)[:, None] & (columns < D)[None, :]
    out_matrix = rounded_to(tl.load(out_weight + cell, mask=real_cell, other=0.0), LOW)
    offset = tl.load(out_bias + columns, mask=columns < D, other=0.0)
    if DROP:
        head_seed = tl.load(seed)
    if DROP_STATE:
        state_seed = tl.load(seed + 1)
    count = 0.0
    if TRACK:
        # Sums of squares around a value near the mean, here the running mean, lose no digits.
        around = tl.load(origin + columns, mask=columns < D, other=0.0)
    sums = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    squares = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for node in range(split, N, splits):
        begin = tl.load(rowptr + node).to(tl.int32)
        end = tl.minimum(tl.load(rowptr + node + 1).to(tl.int32), rows)
        query = read_row(q, node, columns, D)
        total = tl.zeros([BLOCK_D], tl.float32)
        value_sum = tl.zeros([BLOCK_D], tl.float32)
        state_sum = tl.zeros([BLOCK_D], tl.float32)
        for start in range(begin, end, BLOCK_R):
            row = start + tl.arange(0, BLOCK_R)
            real = row < end
            place = row[:, None] * PITCH + columns[None, :]
            inside = real[:, None] & (columns < PITCH)[None, :]
            e = normed(tl.load(z + place, mask=inside, other=0.0), norm, columns, real, D, NORMED)
            other = tl.load(sender + row, mask=real, other=0)
            operand = rounded_to(e, LOW)
            scale = tl.dot(operand, scale_matrix, input_precision=PRECISION) + scale_bias[None, :]
            product = (query[None, :] + read_rows(k, other, real, columns, D)) * scale
            state = tl.dot(operand, shift_matrix, input_precision=PRECISION) + shift_bias[None, :]
            root = tl.sqrt(tl.abs(product))
            state = tl.maximum(state + tl.where(product < 0, -root, root), 0.0)
            operand = rounded_to(state, LOW)
            scores = tl.dot(operand, score_matrix, input_precision=PRECISION)
            weight = tl.exp(tl.minimum(tl.maximum(scores, -clamp), clamp))
            weight = tl.where(real[:, None] & (columns < D)[None, :], weight, 0.0)
            total += tl.sum(weight, axis=0)
            if DROP:
                weight *= head_factors(head_seed, row, columns, threshold, factor, HEADS, CHANNELS)
            value_sum += tl.sum(weight * read_rows(v, other, real, columns, D), axis=0)
            state_sum += tl.sum(weight * state, axis=0)
            if DROP_STATE:
                keep = kept(state_seed, row, state_threshold, BLOCK_R, BLOCK_D)
                operand = rounded_to(tl.where(keep, state * state_factor, 0.0), LOW)
            following = e + tl.dot(operand, out_matrix, input_precision=PRECISION) + offset[None, :]
            tl.store(z_next + place, rounded_to(following, LOW), mask=inside)
            if TRACK:
                count += tl.minimum(end - start, BLOCK_R).to(tl.float32)
                centred = tl.where(real[:, None], following - around[None, :], 0.0)
                sums += centred
                squares += centred * centred
        mean = 1.0 / tl.maximum(total, TINY)
        target = node * D + columns
        tl.store(totals + target, total, mask=columns < D)
        tl.store(values + target, value_sum * mean, mask=columns < D)
        tl.store(states + target, state_sum * mean, mask=columns < D)
    if TRACK:
        shifted = tl.sum(sums, axis=0) / tl.maximum(count, TINY)
        spread = tl.maximum(tl.sum(squares, axis=0) - shifted * shifted * count, 0.0)
        write_parts(parts + split * D, splits * D, D, columns, count, around + shifted, spread)


@triton.jit
def finish_norm(
    parts, scale, shift, running_mean, running_variance, momentum, epsilon, splits, moments, norm, D: tl.constexpr,
    BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Moments [3, D] of z, its norm as slope and offset [2, D], and the running statistics; one program."""
    columns = tl.arange(0, BLOCK_D)
    total, mean, variance = read_parts(parts, splits * D, splits, D, columns, PARTS)
    write_moments(moments, D, D, columns, total, mean, variance)
    track(running_mean, running_variance, momentum, D, columns, total, mean, variance)
    slope = tl.load(scale + columns, mask=columns < D, other=0.0) / tl.sqrt(variance + epsilon)
    offset = tl.load(shift + columns, mask=columns < D, other=0.0) - mean * slope
    tl.store(norm + columns, slope, mask=columns < D)
    tl.store(norm + D + columns, offset, mask=columns < D)
