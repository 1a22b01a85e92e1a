"""Triton kernels of attention over the nodes of each graph, one program for each graph and head.

    s_ij = q_i · k_j / √d + b_ij        p_ij = exp(s_ij - λ_i)        λ_i = log Σ_j exp s_ij
    y_i = Σ_j drop(p_ij) v_j            b_ij is 0 where no bias is given

    δ_i = ∂y_i · y_i        ∂b_ij = ∂s_ij = p_ij (drop(∂y_i · v_j) - δ_i)
    ∂q_i = Σ_j ∂s_ij k_j / √d        ∂k_j = Σ_i ∂s_ij q_i / √d        ∂v_j = Σ_i drop(p_ij) ∂y_i

A graph is read tile by tile; a molecule is one tile. Queries, keys and values lie next to each other, [N, 3 D]. The
mask of a pair is that of its row among all pairs, which are all pairs of each graph; so is its bias, [P, H].

Legend: N nodes, P pairs, D width, H heads of C channels.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.ops.tiles import kept_at


@triton.jit
def head_rows(values, node, real, head, PITCH: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr):
    """[ROWS, C] the channels of a head of some nodes; zeros beyond."""
    channel = tl.arange(0, BLOCK_C)
    cell = node[:, None] * PITCH + head * C + channel[None, :]
    return tl.load(values + cell, mask=real[:, None] & (channel < C)[None, :], other=0.0)


@triton.jit
def write_head(target, node, real, head, values, PITCH: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr):
    """The same channels of a result."""
    channel = tl.arange(0, BLOCK_C)
    cell = node[:, None] * PITCH + head * C + channel[None, :]
    tl.store(target + cell, values, mask=real[:, None] & (channel < C)[None, :])


@triton.jit
def pair_kept(seed, draw, row, other, first, head, level, HEADS: tl.constexpr):
    """[Q, K] whether the weight of a pair is kept; `row` is the first row of a receiver."""
    place = (row[:, None] + (other - first)[None, :]) * HEADS + head
    return kept_at(tl.load(seed) + draw, place, level)


@triton.jit
def biased(score, bias, row, other, first, real, there, head, BIAS_PITCH: tl.constexpr):
    """s [Q, K], with the bias of each pair where one is given."""
    if bias is not None:
        place = (row[:, None] + (other - first)[None, :]) * BIAS_PITCH + head
        score += tl.load(bias + place, mask=real[:, None] & there[None, :], other=0.0).to(tl.float32)
    return score


@triton.jit
def attend(
    qkv, bias, node_ptr, rowptr, y, highest_kept, seed, draw, level, factor, root_scale, D: tl.constexpr,
    C: tl.constexpr, HEADS: tl.constexpr, BIAS_PITCH: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """y of one graph and head, and λ [N, H] of its nodes."""
    graph, head = tl.program_id(0), tl.program_id(1)
    first, last = tl.load(node_ptr + graph).to(tl.int32), tl.load(node_ptr + graph + 1).to(tl.int32)
    for start in range(first, last, BLOCK_R):
        node = start + tl.arange(0, BLOCK_R)
        real = node < last
        query = head_rows(qkv, node, real, head, 3 * D, C, BLOCK_C) * root_scale
        row = tl.load(rowptr + node, mask=real, other=0).to(tl.int32)
        highest = tl.full([BLOCK_R], -float("inf"), tl.float32)
        total = tl.zeros([BLOCK_R], tl.float32)
        out = tl.zeros([BLOCK_R, BLOCK_C], tl.float32)
        for begin in range(first, last, BLOCK_R):
            other = begin + tl.arange(0, BLOCK_R)
            there = other < last
            key = head_rows(qkv + D, other, there, head, 3 * D, C, BLOCK_C)
            value = head_rows(qkv + 2 * D, other, there, head, 3 * D, C, BLOCK_C)
            score = tl.dot(query, tl.trans(key), input_precision=PRECISION)
            score = biased(score, bias, row, other, first, real, there, head, BIAS_PITCH)
            score = tl.where(there[None, :], score, -float("inf"))
            higher = tl.maximum(highest, tl.max(score, axis=1))
            weight = tl.exp(score - higher[:, None])
            shrink = tl.exp(highest - higher)
            total = total * shrink + tl.sum(weight, axis=1)
            if DROP:
                stays = pair_kept(seed, draw, row, other, first, head, level, HEADS)
                weight = tl.where(stays, weight * factor, 0.0)
            out = tl.dot(weight, value, out * shrink[:, None], input_precision=PRECISION)
            highest = higher
        write_head(y, node, real, head, out / total[:, None], D, C, BLOCK_C)
        tl.store(highest_kept + node * HEADS + head, highest + tl.log(total), mask=real)


@triton.jit
def pair_gradients(
    score, value, pull, peak, delta, real, there, stays, factor, DROP: tl.constexpr, PRECISION: tl.constexpr
):
    """[Q, K] drop(p) and ∂s of a tile of pairs with the scores s."""
    inside = real[:, None] & there[None, :]
    weight = tl.where(inside, tl.exp(score - peak[:, None]), 0.0)
    back = tl.dot(pull, tl.trans(value), input_precision=PRECISION)
    passed = weight
    if DROP:
        passed = tl.where(stays, weight * factor, 0.0)
        back = tl.where(stays, back * factor, 0.0)
    return passed, weight * (back - delta[:, None])


@triton.jit
def receiver_rows(
    qkv, y, gy, rowptr, highest_kept, node, real, head, root_scale, D: tl.constexpr, C: tl.constexpr,
    HEADS: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """q/√d, ∂y, λ, δ and the first row of some receivers."""
    query = head_rows(qkv, node, real, head, 3 * D, C, BLOCK_C) * root_scale
    pull = head_rows(gy, node, real, head, D, C, BLOCK_C)
    delta = tl.sum(pull * head_rows(y, node, real, head, D, C, BLOCK_C), axis=1)
    peak = tl.load(highest_kept + node * HEADS + head, mask=real, other=0.0)
    return query, pull, peak, delta, tl.load(rowptr + node, mask=real, other=0).to(tl.int32)


@triton.jit
def attend_backward(
    qkv, bias, y, gy, node_ptr, rowptr, highest_kept, gqkv, gbias, seed, draw, level, factor, root_scale,
    D: tl.constexpr, C: tl.constexpr, HEADS: tl.constexpr, BIAS_PITCH: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """∂q, ∂k, ∂v and ∂b of one graph and head: first by senders, then by receivers."""
    graph, head = tl.program_id(0), tl.program_id(1)
    first, last = tl.load(node_ptr + graph).to(tl.int32), tl.load(node_ptr + graph + 1).to(tl.int32)
    for begin in range(first, last, BLOCK_R):
        other = begin + tl.arange(0, BLOCK_R)
        there = other < last
        key = head_rows(qkv + D, other, there, head, 3 * D, C, BLOCK_C)
        value = head_rows(qkv + 2 * D, other, there, head, 3 * D, C, BLOCK_C)
        at_key = tl.zeros([BLOCK_R, BLOCK_C], tl.float32)
        at_value = tl.zeros([BLOCK_R, BLOCK_C], tl.float32)
        for start in range(first, last, BLOCK_R):
            node = start + tl.arange(0, BLOCK_R)
            real = node < last
            query, pull, peak, delta, row = receiver_rows(
                qkv, y, gy, rowptr, highest_kept, node, real, head, root_scale, D, C, HEADS, BLOCK_C
            )
            stays = pair_kept(seed, draw, row, other, first, head, level, HEADS)
            score = tl.dot(query, tl.trans(key), input_precision=PRECISION)
            score = biased(score, bias, row, other, first, real, there, head, BIAS_PITCH)
            passed, at_score = pair_gradients(
                score, value, pull, peak, delta, real, there, stays, factor, DROP, PRECISION
            )
            if bias is not None:
                place = (row[:, None] + (other - first)[None, :]) * BIAS_PITCH + head
                tl.store(gbias + place, at_score.to(gbias.dtype.element_ty), mask=real[:, None] & there[None, :])
            at_key = tl.dot(tl.trans(at_score), query, at_key, input_precision=PRECISION)
            at_value = tl.dot(tl.trans(passed), pull, at_value, input_precision=PRECISION)
        write_head(gqkv + D, other, there, head, at_key, 3 * D, C, BLOCK_C)
        write_head(gqkv + 2 * D, other, there, head, at_value, 3 * D, C, BLOCK_C)
    for start in range(first, last, BLOCK_R):
        node = start + tl.arange(0, BLOCK_R)
        real = node < last
        query, pull, peak, delta, row = receiver_rows(
            qkv, y, gy, rowptr, highest_kept, node, real, head, root_scale, D, C, HEADS, BLOCK_C
        )
        at_query = tl.zeros([BLOCK_R, BLOCK_C], tl.float32)
        for begin in range(first, last, BLOCK_R):
            other = begin + tl.arange(0, BLOCK_R)
            there = other < last
            key = head_rows(qkv + D, other, there, head, 3 * D, C, BLOCK_C)
            value = head_rows(qkv + 2 * D, other, there, head, 3 * D, C, BLOCK_C)
            stays = pair_kept(seed, draw, row, other, first, head, level, HEADS)
            score = tl.dot(query, tl.trans(key), input_precision=PRECISION)
            score = biased(score, bias, row, other, first, real, there, head, BIAS_PITCH)
            _, at_score = pair_gradients(score, value, pull, peak, delta, real, there, stays, factor, DROP, PRECISION)
            at_query = tl.dot(at_score, key, at_query, input_precision=PRECISION)
        write_head(gqkv, node, real, head, at_query * root_scale, 3 * D, C, BLOCK_C)
