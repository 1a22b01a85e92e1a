"""Triton kernels of a GatedGCN layer with its residual sums, forward: three per block.

forward_project   x = BN(v) of the previous block;  A x + a, B x + b, D x + d, E x + r over nodes
                  e = e + drop(ReLU(BN(ê))) of the previous block;  C e + c over edges
forward_gates     ê_ij = C e_ij + D x_j + E x_i;  y_i = Σ_j σ(ê_ij) B x_j / (Σ_j σ(ê_ij) + ε);  m = A x + y
forward_join      t = x + drop(ReLU(BN(m)))

and the moments of ê, m and t. A program owns one tile of nodes or of edges; edges lie in the order of their receivers.

Legend: N nodes, E edges, D width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.block_pass.feed_forward import normed, write_tile_moments
from ckgconv.backends.cuda.block_pass.gine_kernels import list_of, transposed
from ckgconv.backends.cuda.node_pass.forward_kernels import dropped, node_rows, senders
from ckgconv.ops.tiles import (
    TINY,
    merge_moments,
    no_moments,
    read_parts,
    row_tile,
    track,
    write_moments,
    write_parts,
)


@triton.jit
def edge_moments(
    parts, moments, running_mean, running_variance, momentum, count, columns, first, D: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    """μ and σ² of ê; the first program keeps them and moves running statistics."""
    total, mean, variance = read_parts(parts, count * D, count, D, columns, PARTS)
    if first:
        write_moments(moments, D, D, columns, total, mean, variance)
        track(running_mean, running_variance, momentum, D, columns, total, mean, variance)
    return mean, variance


@triton.jit
def keep_edge_moments(
    parts, moments, running_mean, running_variance, momentum, count, D: tl.constexpr, PARTS: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """After the last block, whose ê no launch reads: its running statistics move too."""
    edge_moments(parts, moments, running_mean, running_variance, momentum, count, tl.arange(0, BLOCK_D), True, D, PARTS)


@triton.jit
def write_product(target, place, inside, x, weight, bias, columns, D: tl.constexpr, PRECISION: tl.constexpr):
    """x Wᵀ + b of a tile."""
    out = tl.dot(x, transposed(weight, columns, D), input_precision=PRECISION)
    out += tl.load(bias + columns, mask=columns < D, other=0.0)[None, :]
    tl.store(target + place, out, mask=inside)


@triton.jit
def project_nodes(
    v, v_parts, v_moments, v_mean, v_variance, v_scale, v_shift, momentum, weight_a, bias_a, weight_b, bias_b,
    weight_d, bias_d, weight_e, bias_e, x_kept, at_a, at_b, at_d, at_e, filled, tile, splits, epsilon, D: tl.constexpr,
    NORM: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """x of a tile of nodes, and its four products."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    _, _, target, inside = row_tile(tile * BLOCK_N, nodes, columns, D, BLOCK_N)
    own = tl.load(v + target, mask=inside, other=0.0)
    if NORM:
        own = normed(
            v, v_parts, v_moments, v_mean, v_variance, momentum, v_scale, v_shift, target, inside, nodes, splits,
            columns, epsilon, D, PARTS, BLOCK_N,
        )  # fmt: skip
    tl.store(x_kept + target, own, mask=inside)
    write_product(at_a, target, inside, own, weight_a, bias_a, columns, D, PRECISION)
    write_product(at_b, target, inside, own, weight_b, bias_b, columns, D, PRECISION)
    write_product(at_d, target, inside, own, weight_d, bias_d, columns, D, PRECISION)
    write_product(at_e, target, inside, own, weight_e, bias_e, columns, D, PRECISION)


@triton.jit
def project_edges(
    edges, state, state_parts, state_moments, state_mean, state_variance, state_scale, state_shift, momentum,
    state_count, weight_c, bias_c, edges_kept, at_c, edge_filled, tile, seed, draw, level, factor, epsilon,
    D: tl.constexpr, NORM: tl.constexpr, DROP: tl.constexpr, PRECISION: tl.constexpr, BLOCK_E: tl.constexpr,
    BLOCK_D: tl.constexpr, STATE_PARTS: tl.constexpr,
):  # fmt: skip
    """e of a tile of edges, and its product."""
    count = tl.load(edge_filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    row, _, place, there = row_tile(tile * BLOCK_E, count, columns, D, BLOCK_E)
    values = tl.load(edges + place, mask=there, other=0.0)
    if NORM:
        mean, variance = edge_moments(
            state_parts, state_moments, state_mean, state_variance, momentum, state_count, columns, tile == 0, D,
            STATE_PARTS,
        )  # fmt: skip
        slope = tl.load(state_scale + columns, mask=columns < D, other=0.0) / tl.sqrt(variance + epsilon)
        offset = tl.load(state_shift + columns, mask=columns < D, other=0.0)
        change = tl.load(state + place, mask=there, other=0.0)
        change = tl.maximum((change - mean[None, :]) * slope[None, :] + offset[None, :], 0.0)
        if DROP:
            change = dropped(change, tl.load(seed) + draw, row, level, factor, BLOCK_E, BLOCK_D)
        values += tl.where(there, change, 0.0)
    tl.store(edges_kept + place, values, mask=there)
    write_product(at_c, place, there, values, weight_c, bias_c, columns, D, PRECISION)


@triton.jit
def forward_project(
    v, v_parts, v_moments, v_mean, v_variance, v_scale, v_shift, momentum, weight_a, bias_a, weight_b, bias_b,
    weight_d, bias_d, weight_e, bias_e, x_kept, at_a, at_b, at_d, at_e, edges, state, state_parts, state_moments,
    state_mean, state_variance, state_scale, state_shift, state_count, weight_c, bias_c, edges_kept, at_c, filled,
    edge_filled, seed, draw, level, factor, epsilon, D: tl.constexpr, splits, NORM: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
    STATE_PARTS: tl.constexpr,
):  # fmt: skip
    """The first `splits` programs own tiles of nodes, the others tiles of edges."""
    program = tl.program_id(0)
    if program < splits:
        project_nodes(
            v, v_parts, v_moments, v_mean, v_variance, v_scale, v_shift, momentum, weight_a, bias_a, weight_b, bias_b,
            weight_d, bias_d, weight_e, bias_e, x_kept, at_a, at_b, at_d, at_e, filled, program, splits, epsilon, D,
            NORM, PRECISION, BLOCK_N, BLOCK_D, PARTS,
        )  # fmt: skip
    else:
        project_edges(
            edges, state, state_parts, state_moments, state_mean, state_variance, state_scale, state_shift, momentum,
            state_count, weight_c, bias_c, edges_kept, at_c, edge_filled, program - splits, seed, draw, level, factor,
            epsilon, D, NORM, DROP, PRECISION, BLOCK_E, BLOCK_D, STATE_PARTS,
        )  # fmt: skip


@triton.jit
def list_moments(values, stored):
    """W, μ and M₂ [D] of the values [N, C, D] that are stored [N, C]; the others are zero."""
    total = tl.sum(tl.sum(stored.to(tl.float32), axis=1), axis=0)
    mean = tl.sum(tl.sum(values, axis=1), axis=0) / tl.maximum(total, TINY)
    offset = tl.where(stored[:, :, None], values - mean[None, None, :], 0.0)
    return total, mean, tl.sum(tl.sum(offset * offset, axis=1), axis=0)


@triton.jit
def forward_gates(
    at_a, at_b, at_c, at_d, at_e, pointer, sender, state, state_parts, y, shares, m, m_parts, filled, floor,
    D: tl.constexpr, splits, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """ê of the edges of a tile of receivers, y, Σσ + ε and m; `floor` is ε."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    own = tl.load(at_e + target, mask=inside, other=0.0)
    begin, length = list_of(pointer, node, real)
    summed = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
    gates = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
    total, mean, squares = no_moments(BLOCK_D)
    for chunk in range(0, tl.max(length, axis=0), CHUNK):
        place = chunk + tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        row, other = begin[:, None] + place[None, :], senders(sender, begin, length, place)
        values = node_rows(at_c, row, stored, columns, D) + node_rows(at_d, other, stored, columns, D)
        values = tl.where(stored[:, :, None], values + own[:, None, :], 0.0)
        there = stored[:, :, None] & (columns < D)[None, None, :]
        tl.store(state + row[:, :, None] * D + columns[None, None, :], values, mask=there)
        gate = tl.where(stored[:, :, None], tl.sigmoid(values), 0.0)
        summed += gate * node_rows(at_b, other, stored, columns, D)
        gates += gate
        more, more_mean, more_squares = list_moments(values, stored)
        total, mean, squares = merge_moments(total, mean, squares, more, more_mean, more_squares)
    write_parts(state_parts + tl.program_id(0) * D, splits * D, D, columns, total, mean, squares)
    share = tl.sum(gates, axis=1) + floor
    received = tl.sum(summed, axis=1) / share
    tl.store(shares + target, share, mask=inside)
    tl.store(y + target, received, mask=inside)
    received += tl.load(at_a + target, mask=inside, other=0.0)
    tl.store(m + target, received, mask=inside)
    write_tile_moments(m_parts, tl.program_id(0), received, real, inside, columns, splits, D)


@triton.jit
def forward_join(
    m, m_parts, m_moments, m_mean, m_variance, momentum, m_scale, m_shift, m_splits, x, t, t_parts, filled, seed, draw,
    level, factor, epsilon, D: tl.constexpr, splits, DROP: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, M_ROWS: tl.constexpr, M_PARTS: tl.constexpr,
):  # fmt: skip
    """t; M_ROWS are the nodes of a part of the moments of m."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    change = normed(
        m, m_parts, m_moments, m_mean, m_variance, momentum, m_scale, m_shift, target, inside, nodes, m_splits,
        columns, epsilon, D, M_PARTS, M_ROWS,
    )  # fmt: skip
    change = tl.maximum(change, 0.0)
    if DROP:
        change = dropped(change, tl.load(seed) + draw, node, level, factor, BLOCK_N, BLOCK_D)
    change += tl.load(x + target, mask=inside, other=0.0)
    tl.store(t + target, change, mask=inside)
    write_tile_moments(t_parts, tl.program_id(0), change, real, inside, columns, splits, D)
