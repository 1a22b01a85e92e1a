"""Triton kernels of a GatedGCN layer with its residual sums, backward: four per block.

backward_join       G gradient at t through its norm;  ∂n = drop(G) ⊙ [BN(m) > 0], the gradient behind the norm of m
backward_receivers  ∂m through its norm;  ∂ê_ij = σ' ⊙ ∂m_i ⊙ (B x_j - y_i) / (Σσ + ε) + what comes back through BN(ê)
backward_senders    ∂(B x)_j = Σ_i σ(ê_ij) ⊙ ∂m_i / (Σσ + ε);  ∂(D x)_j = Σ_i ∂ê_ij
backward_project    ∂x = G + Aᵀ ∂m + Bᵀ … + Dᵀ … + Eᵀ Σ_j ∂ê_ij over nodes;  ∂e += Cᵀ ∂ê over edges, and behind the norm
                    of the ê before it

Gradients of the four products with x lie next to each other, [N, 4 D] in the order A, B, D, E.

Legend: N nodes, E edges, D width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.block_pass.feed_forward import write_norm_sums
from ckgconv.backends.cuda.block_pass.gine_kernels import list_of, square
from ckgconv.backends.cuda.node_pass.backward_kernels import known_norm, through_norm
from ckgconv.backends.cuda.node_pass.forward_kernels import dropped, node_rows, senders
from ckgconv.ops.tiles import TINY, read_moments, read_sums, row_tile


@triton.jit
def before_relu(g, values, moments, scale, shift, columns, epsilon, D: tl.constexpr):
    """g where BN(values) > 0, else 0."""
    mean, root, gamma, offset = known_norm(moments, scale, shift, columns, epsilon, D)
    return tl.where((values - mean[None, :]) * (root * gamma)[None, :] + offset[None, :] > 0, g, 0.0)


@triton.jit
def backward_join(
    g, t, t_moments, t_scale, t_sums, part_stride, splits, m, m_moments, m_scale, m_shift, m_sums, residual, gn, filled,
    seed, draw, level, factor, epsilon, D: tl.constexpr, DROP: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, _, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    pull = through_norm(
        g, t, t_moments, t_scale, t_sums, part_stride, target, inside, columns, D, splits, epsilon, PARTS
    )
    tl.store(residual + target, pull, mask=inside)
    if DROP:
        pull = dropped(pull, tl.load(seed) + draw, node, level, factor, BLOCK_N, BLOCK_D)
    values = tl.load(m + target, mask=inside, other=0.0)
    pull = tl.where(inside, before_relu(pull, values, m_moments, m_scale, m_shift, columns, epsilon, D), 0.0)
    tl.store(gn + target, pull, mask=inside)
    part = tl.program_id(0)
    write_norm_sums(m_sums, part, part_stride, pull, m, m_moments, target, inside, columns, epsilon, D)


@triton.jit
def backward_receivers(
    gn, m, m_moments, m_scale, m_sums, part_stride, splits, at_b, y, shares, state, pointer, sender, ge, state_moments,
    state_scale, state_sums, state_stride, state_count, gradient, gs, filled, epsilon, D: tl.constexpr,
    BACK: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
    STATE_PARTS: tl.constexpr,
):  # fmt: skip
    """∂m, ∂ê of the edges of a tile of receivers, and their sums; BACK: `ge` comes back behind the norm of ê."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    pull = through_norm(
        gn, m, m_moments, m_scale, m_sums, part_stride, target, inside, columns, D, splits, epsilon, PARTS
    )
    wide = node[:, None] * (4 * D) + columns[None, :]
    tl.store(gradient + wide, pull, mask=inside)
    pull = pull / tl.load(shares + target, mask=inside, other=1.0)
    own = tl.load(y + target, mask=inside, other=0.0)
    if BACK:
        count, mean, variance = read_moments(state_moments, D, D, columns)
        root = 1.0 / tl.sqrt(variance + epsilon)
        slope = tl.load(state_scale + columns, mask=columns < D, other=0.0) * root
        sum_g = read_sums(state_sums, state_count, state_stride, D, columns, STATE_PARTS) / tl.maximum(count, TINY)
        sum_gs = read_sums(state_sums + D, state_count, state_stride, D, columns, STATE_PARTS)
        sum_gs = sum_gs / tl.maximum(count, TINY)
    begin, length = list_of(pointer, node, real)
    collected = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
    for chunk in range(0, tl.max(length, axis=0), CHUNK):
        place = chunk + tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        row = begin[:, None] + place[None, :]
        values = node_rows(state, row, stored, columns, D)
        gate = tl.sigmoid(values)
        sent = node_rows(at_b, senders(sender, begin, length, place), stored, columns, D)
        back = pull[:, None, :] * (sent - own[:, None, :]) * gate * (1.0 - gate)
        if BACK:
            standard = (values - mean[None, None, :]) * root[None, None, :]
            through = node_rows(ge, row, stored, columns, D) - sum_g[None, None, :] - standard * sum_gs[None, None, :]
            back += through * slope[None, None, :]
        back = tl.where(stored[:, :, None], back, 0.0)
        there = stored[:, :, None] & (columns < D)[None, None, :]
        tl.store(gs + row[:, :, None] * D + columns[None, None, :], back, mask=there)
        collected += back
    tl.store(gradient + 3 * D + wide, tl.sum(collected, axis=1), mask=inside)


@triton.jit
def backward_senders(
    state, shares, gs, gradient, sender_ptr, sender_rows, sender_receiver, filled, D: tl.constexpr,
    BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂(B x) and ∂(D x) of a tile of senders; ∂m of their receivers is read next to where both are written."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, _, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    begin, length = list_of(sender_ptr, node, real)
    at_b = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
    at_d = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
    for chunk in range(0, tl.max(length, axis=0), CHUNK):
        place = chunk + tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        row, other = senders(sender_rows, begin, length, place), senders(sender_receiver, begin, length, place)
        there = stored[:, :, None] & (columns < D)[None, None, :]
        cells = other[:, :, None] * (4 * D) + columns[None, None, :]
        pull = tl.load(gradient + cells, mask=there, other=0.0)
        share = tl.load(shares + other[:, :, None] * D + columns[None, None, :], mask=there, other=1.0)
        at_b += tl.sigmoid(node_rows(state, row, stored, columns, D)) * pull / share
        at_d += node_rows(gs, row, stored, columns, D)
    wide = node[:, None] * (4 * D) + columns[None, :]
    tl.store(gradient + D + wide, tl.sum(at_b, axis=1), mask=inside)
    tl.store(gradient + 2 * D + wide, tl.sum(at_d, axis=1), mask=inside)


@triton.jit
def pulled_through(gradient, weight, passed, place, inside, columns, D: tl.constexpr, PRECISION: tl.constexpr):
    """passed + g W of a tile."""
    pull = tl.load(gradient + place, mask=inside, other=0.0)
    return tl.dot(pull, square(weight, columns, D), passed, input_precision=PRECISION)


@triton.jit
def nodes_back(
    gradient, weight_a, weight_b, weight_d, weight_e, residual, v, v_moments, v_sums, part_stride, gx, filled, tile,
    epsilon, N, D: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂x of a tile of nodes, and its sums behind the norm of v."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, _, target, inside = row_tile(tile * BLOCK_N, nodes, columns, D, BLOCK_N)
    wide = node[:, None] * (4 * D) + columns[None, :]
    passed = tl.load(residual + target, mask=inside, other=0.0)
    passed = pulled_through(gradient, weight_a, passed, wide, inside, columns, D, PRECISION)
    passed = pulled_through(gradient + D, weight_b, passed, wide, inside, columns, D, PRECISION)
    passed = pulled_through(gradient + 2 * D, weight_d, passed, wide, inside, columns, D, PRECISION)
    passed = pulled_through(gradient + 3 * D, weight_e, passed, wide, inside, columns, D, PRECISION)
    passed = tl.where(inside, passed, 0.0)
    # Zero in padding: sums over all N rows may follow.
    tl.store(gx + target, passed, mask=(node < N)[:, None] & (columns < D)[None, :])
    if NORM:
        write_norm_sums(v_sums, tile, part_stride, passed, v, v_moments, target, inside, columns, epsilon, D)


@triton.jit
def edges_back(
    gs, weight_c, ge, state, state_moments, state_scale, state_shift, state_sums, state_stride, behind, edge_filled,
    tile, seed, draw, level, factor, epsilon, D: tl.constexpr, NORM: tl.constexpr, BACK: tl.constexpr,
    DROP: tl.constexpr, PRECISION: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂e of a tile of edges, added to `ge` where BACK, and the gradient `behind` the norm of the previous ê."""
    count = tl.load(edge_filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    row, _, place, there = row_tile(tile * BLOCK_E, count, columns, D, BLOCK_E)
    passed = tl.zeros([BLOCK_E, BLOCK_D], tl.float32)
    if BACK:
        passed = tl.load(ge + place, mask=there, other=0.0)
    passed = pulled_through(gs, weight_c, passed, place, there, columns, D, PRECISION)
    tl.store(ge + place, passed, mask=there)
    if NORM:
        if DROP:
            passed = dropped(passed, tl.load(seed) + draw, row, level, factor, BLOCK_E, BLOCK_D)
        values = tl.load(state + place, mask=there, other=0.0)
        passed = before_relu(passed, values, state_moments, state_scale, state_shift, columns, epsilon, D)
        passed = tl.where(there, passed, 0.0)
        tl.store(behind + place, passed, mask=there)
        write_norm_sums(state_sums, tile, state_stride, passed, state, state_moments, place, there, columns, epsilon, D)


@triton.jit
def backward_project(
    gradient, weight_a, weight_b, weight_d, weight_e, residual, v, v_moments, v_sums, part_stride, gx, gs, weight_c, ge,
    state, state_moments, state_scale, state_shift, state_sums, state_stride, behind, filled, edge_filled, seed, draw,
    level, factor, epsilon, N, D: tl.constexpr, splits, NORM: tl.constexpr, BACK: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The first `splits` programs own tiles of nodes, the others tiles of edges."""
    program = tl.program_id(0)
    if program < splits:
        nodes_back(
            gradient, weight_a, weight_b, weight_d, weight_e, residual, v, v_moments, v_sums, part_stride, gx, filled,
            program, epsilon, N, D, NORM, PRECISION, BLOCK_N, BLOCK_D,
        )  # fmt: skip
    else:
        edges_back(
            gs, weight_c, ge, state, state_moments, state_scale, state_shift, state_sums, state_stride, behind,
            edge_filled, program - splits, seed, draw, level, factor, epsilon, D, NORM, BACK, DROP, PRECISION, BLOCK_E,
            BLOCK_D,
        )  # fmt: skip
