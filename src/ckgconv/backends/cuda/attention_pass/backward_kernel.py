"""Triton kernels of the attention pass backward; values of the forward pass are computed again from z.

    G    = γ' ρ' ( g' - Σg'/W - ẑ' Σ g'ẑ' / W )                        gradient at z', through its norm
    ∂α   = drop( ∂y·v_j + ∂s·ê_ij ) summed over each head               what the nodes received, by softmax
    ∂a   = α (∂α - ∂y·y_i - ∂s·s_i)                                     at the scores, 0 where they are clamped
    ∂ê   = drop(α) ∂s + ∂a A + drop(G O)                                at the new state, then through the ReLU
    g    = ∂(W e) W + ∂(U e) U + G                                      gradient at e, with its sums for the norm of z

Gradients at k_j and v_j are sums over receivers, for which `sum_by_sender` reads what each pair contributes.

Legend: N nodes, P pairs, D width, H heads, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.attention_pass.forward_kernel import (
    head_factors,
    normed,
    read_pair_bias,
    read_pair_matrix,
    read_row,
    read_rows,
    rounded_to,
    same_head,
)
from ckgconv.ops.tiles import TINY, kept, read_moments


@triton.jit
def attend_backward(
    z, norm, moments, q, k, v, rowptr, sender, filled, pair_weight, pair_bias, score, out_weight, values, states,
    totals, pull_values, pull_states, g, g_sums, z_next, next_moments, next_scale, gz, gq, g_both, alpha,
    pair_weight_parts, pair_bias_parts, score_parts, out_weight_parts, out_bias_parts, gz_parts, part_stride, N, seed,
    threshold, factor, state_threshold, state_factor, clamp, epsilon, splits, D: tl.constexpr, HEADS: tl.constexpr,
    PITCH: tl.constexpr, NORMED: tl.constexpr, CONTINUED: tl.constexpr, DROP: tl.constexpr, DROP_STATE: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients from every `splits`-th receiver. CONTINUED: a later layer reads z', and sent a gradient."""
    CHANNELS: tl.constexpr = D // HEADS
    storage = g_both.dtype.element_ty
    LOW: tl.constexpr = z.dtype.element_ty != tl.float32
    split = tl.program_id(0)
    rows = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    together = same_head(columns, D, CHANNELS)
    scale_matrix = read_pair_matrix(pair_weight, 0, columns, columns, D, CHANNELS)
    shift_matrix = read_pair_matrix(pair_weight, CHANNELS, columns, columns, D, CHANNELS)
    scale_bias = read_pair_bias(pair_bias, 0, columns, D, CHANNELS)
    shift_bias = read_pair_bias(pair_bias, CHANNELS, columns, D, CHANNELS)
    vector = tl.load(score + columns, mask=columns < D, other=0.0)
    score_matrix = rounded_to(tl.where(together, vector[:, None], 0.0), LOW)
    ones = tl.where(together, 1.0, 0.0).to(storage)
    real_cell = (columns < D)[:, None] & (columns < D)[None, :]
    if CONTINUED:
        out_matrix = tl.load(out_weight + columns[:, None] * D + columns[None, :], mask=real_cell, other=0.0)
        out_matrix = out_matrix.to(storage)
        weight_sum, mean_next, variance_next = read_moments(next_moments, D, D, columns)
        root_next = 1.0 / tl.sqrt(variance_next + epsilon)
        slope_next = tl.load(next_scale + columns, mask=columns < D, other=0.0) * root_next
        # G = slope g + constant + linear z'.
        sum_gz = tl.load(g_sums + columns, mask=columns < D, other=0.0)
        sum_g = tl.load(g_sums + D + columns, mask=columns < D, other=0.0)
        linear_next = -slope_next * root_next * sum_gz / tl.maximum(weight_sum, TINY)
        constant_next = -slope_next * sum_g / tl.maximum(weight_sum, TINY) - mean_next * linear_next
    if DROP:
        head_seed = tl.load(seed)
    if DROP_STATE:
        state_seed = tl.load(seed + 1)
    gradient_scale = tl.zeros([BLOCK_D, BLOCK_D], tl.float32)
    gradient_shift = tl.zeros([BLOCK_D, BLOCK_D], tl.float32)
    gradient_out = tl.zeros([BLOCK_D, BLOCK_D], tl.float32)
    sum_scale = tl.zeros([BLOCK_D], tl.float32)
    sum_shift = tl.zeros([BLOCK_D], tl.float32)
    sum_out = tl.zeros([BLOCK_D], tl.float32)
    sum_score = tl.zeros([BLOCK_D], tl.float32)
    sum_back = tl.zeros([BLOCK_D], tl.float32)
    sum_back_z = tl.zeros([BLOCK_D], tl.float32)
    for node in range(split, N, splits):
        begin = tl.load(rowptr + node).to(tl.int32)
        end = tl.minimum(tl.load(rowptr + node + 1).to(tl.int32), rows)
        query = read_row(q, node, columns, D)
        inverse = 1.0 / tl.maximum(read_row(totals, node, columns, D), TINY)
        pull_value = read_row(pull_values, node, columns, D)
        pull_state = read_row(pull_states, node, columns, D)
        share = pull_value * read_row(values, node, columns, D) + pull_state * read_row(states, node, columns, D)
        received = tl.sum(tl.where(together, share[:, None], 0.0), axis=0)
        gradient_query = tl.zeros([BLOCK_D], tl.float32)
        for start in range(begin, end, BLOCK_R):
            row = start + tl.arange(0, BLOCK_R)
            real = row < end
            place = row[:, None] * PITCH + columns[None, :]
            inside = real[:, None] & (columns < PITCH)[None, :]
            stored = tl.load(z + place, mask=inside, other=0.0)
            e = normed(stored, norm, columns, real, D, NORMED)
            other = tl.load(sender + row, mask=real, other=0)
            operand = rounded_to(e, LOW)
            scale = tl.dot(operand, rounded_to(scale_matrix, LOW), input_precision=PRECISION) + scale_bias[None, :]
            both = query[None, :] + read_rows(k, other, real, columns, D)
            product = both * scale
            state = tl.dot(operand, rounded_to(shift_matrix, LOW), input_precision=PRECISION) + shift_bias[None, :]
            root = tl.sqrt(tl.abs(product))
            state = tl.maximum(state + tl.where(product < 0, -root, root), 0.0)
            scores = tl.dot(rounded_to(state, LOW), score_matrix, input_precision=PRECISION)
            weight = tl.exp(tl.minimum(tl.maximum(scores, -clamp), clamp)) * inverse[None, :]
            weight = tl.where(real[:, None] & (columns < D)[None, :], weight, 0.0)
            pulled = pull_value[None, :] * read_rows(v, other, real, columns, D) + pull_state[None, :] * state
            pulled = tl.dot(pulled.to(storage), ones, input_precision=PRECISION)
            passed = weight
            if DROP:
                mask = head_factors(head_seed, row, columns, threshold, factor, HEADS, CHANNELS)
                passed, pulled = weight * mask, pulled * mask
            at_score = tl.where(tl.abs(scores) <= clamp, weight * (pulled - received[None, :]), 0.0)
            sum_score += tl.sum(at_score * state, axis=0)
            at_state = passed * pull_state[None, :] + at_score * vector[None, :]
            back = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
            if CONTINUED:
                back = tl.load(g + place, mask=inside, other=0.0).to(tl.float32) * slope_next[None, :]
                back += tl.load(z_next + place, mask=inside, other=0.0).to(tl.float32) * linear_next[None, :]
                back = tl.where(real[:, None] & (columns < D)[None, :], back + constant_next[None, :], 0.0)
                sum_out += tl.sum(back, axis=0)
                through = tl.dot(back.to(storage), out_matrix, input_precision=PRECISION)
                written = state
                if DROP_STATE:
                    keep = kept(state_seed, row, state_threshold, BLOCK_R, BLOCK_D)
                    written = tl.where(keep, state * state_factor, 0.0)
                    through = tl.where(keep, through * state_factor, 0.0)
                gradient_out = tl.dot(
                    tl.trans(back.to(storage)), written.to(storage), gradient_out, input_precision=PRECISION
                )
                at_state += through
            at_shift = tl.where(state > 0, at_state, 0.0)
            at_product = tl.where(root > 0, 0.5 * at_shift / tl.where(root > 0, root, 1.0), 0.0)
            at_scale = at_product * both
            at_both = at_product * scale
            gradient_query += tl.sum(at_both, axis=0)
            tl.store(g_both + place, at_both.to(storage), mask=inside)
            head = row[:, None] * HEADS + (columns // CHANNELS)[None, :]
            first = real[:, None] & ((columns < D) & (columns % CHANNELS == 0))[None, :]
            tl.store(alpha + head, passed, mask=first)
            sum_scale += tl.sum(at_scale, axis=0)
            sum_shift += tl.sum(at_shift, axis=0)
            at_scale16, at_shift16, e16 = at_scale.to(storage), at_shift.to(storage), e.to(storage)
            gradient_scale = tl.dot(tl.trans(at_scale16), e16, gradient_scale, input_precision=PRECISION)
            gradient_shift = tl.dot(tl.trans(at_shift16), e16, gradient_shift, input_precision=PRECISION)
            back = tl.dot(at_scale16, tl.trans(scale_matrix.to(storage)), back, input_precision=PRECISION)
            back = tl.dot(at_shift16, tl.trans(shift_matrix.to(storage)), back, input_precision=PRECISION)
            tl.store(gz + place, back.to(storage), mask=inside)
            if NORMED:
                sum_back += tl.sum(back, axis=0)
                sum_back_z += tl.sum(back * stored.to(tl.float32), axis=0)
        tl.store(gq + node * D + columns, gradient_query, mask=columns < D)
    parts = split * part_stride
    pair_row = columns // CHANNELS * (2 * CHANNELS) + columns % CHANNELS
    cell = pair_row[:, None] * D + columns[None, :]
    tl.store(pair_weight_parts + parts + cell, gradient_scale, mask=real_cell)
    tl.store(pair_weight_parts + parts + cell + CHANNELS * D, gradient_shift, mask=real_cell)
    tl.store(pair_bias_parts + parts + pair_row, sum_scale, mask=columns < D)
    tl.store(pair_bias_parts + parts + pair_row + CHANNELS, sum_shift, mask=columns < D)
    tl.store(score_parts + parts + columns, sum_score, mask=columns < D)
    if CONTINUED:
        tl.store(out_weight_parts + parts + columns[:, None] * D + columns[None, :], gradient_out, mask=real_cell)
        tl.store(out_bias_parts + parts + columns, sum_out, mask=columns < D)
    if NORMED:
        _, mean, variance = read_moments(moments, D, D, columns)
        sum_back_z = (sum_back_z - mean * sum_back) / tl.sqrt(variance + epsilon)
        tl.store(gz_parts + parts + columns, sum_back_z, mask=columns < D)
        tl.store(gz_parts + parts + D + columns, sum_back, mask=columns < D)


@triton.jit
def sum_by_sender(
    g_both, alpha, pull_values, sender_ptr, sender_rows, sender_receiver, filled, gk, gv, D: tl.constexpr,
    HEADS: tl.constexpr, PITCH: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂k_j = Σ_i ∂(q_i + k_j) and ∂v_j = Σ_i drop(α_ij) ∂y_i of one sender."""
    node = tl.program_id(0)
    rows = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    begin, end = tl.load(sender_ptr + node).to(tl.int32), tl.load(sender_ptr + node + 1).to(tl.int32)
    gradient_key = tl.zeros([BLOCK_D], tl.float32)
    gradient_value = tl.zeros([BLOCK_D], tl.float32)
    for start in range(begin, end, BLOCK_R):
        entry = start + tl.arange(0, BLOCK_R)
        row = tl.load(sender_rows + entry, mask=entry < end, other=0).to(tl.int32)
        real = (entry < end) & (row < rows)
        receiver = tl.load(sender_receiver + entry, mask=real, other=0)
        inside = real[:, None] & (columns < D)[None, :]
        pair = tl.load(g_both + row[:, None] * PITCH + columns[None, :], mask=inside, other=0.0)
        gradient_key += tl.sum(pair.to(tl.float32), axis=0)
        head = row[:, None] * HEADS + (columns // (D // HEADS))[None, :]
        weight = tl.load(alpha + head, mask=inside, other=0.0)
        gradient_value += tl.sum(weight * read_rows(pull_values, receiver, real, columns, D), axis=0)
    tl.store(gk + node * D + columns, gradient_key, mask=columns < D)
    tl.store(gv + node * D + columns, gradient_value, mask=columns < D)
