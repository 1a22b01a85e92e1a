"""Triton kernels over the nodes of a block of GRIT, before and after its attention over pairs.

    x = BN(v)                       of the previous block, applied as v is read
    q = Q x + b_q                   k = K x                     w = V x
    y = Σ_j α_ij w_j + B Σ_j α_ij ê_ij                          both sums come from the attention pass
    t = x + O (y ⊙ θ₁ + log(1 + d) y ⊙ θ₂) + b                  and the moments of t

    ∂y = Oᵀ G ⊙ (θ₁ + log(1 + d) θ₂)        ∂(Σ α ê) = Bᵀ ∂y    G gradient at t through its norm
    ∂x = G + Qᵀ ∂q + Kᵀ ∂k + Vᵀ ∂w

B is one matrix for each head: entries between heads are zero. A program owns one tile of nodes.

Legend: N nodes, D width, C channels of a head, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.block_pass.feed_forward import normed, write_norm_sums, write_tile_moments
from ckgconv.backends.cuda.block_pass.gine_kernels import square, transposed
from ckgconv.backends.cuda.node_pass.backward_kernels import through_norm
from ckgconv.backends.cuda.node_pass.forward_kernels import projection
from ckgconv.ops.tiles import row_tile, write_two_sums


@triton.jit
def within_heads(mix, inner, outer, D: tl.constexpr, CHANNELS: tl.constexpr):
    """[inner, outer] B of each head on the diagonal, from [H, C, C]."""
    together = (inner // CHANNELS)[:, None] == (outer // CHANNELS)[None, :]
    inside = together & (inner < D)[:, None] & (outer < D)[None, :]
    return tl.load(mix + inner[:, None] * CHANNELS + (outer % CHANNELS)[None, :], mask=inside, other=0.0)


@triton.jit
def scaler(log_degree, first, second, node, real):
    """θ₁ + log(1 + d) θ₂ of a tile of nodes."""
    logarithm = tl.load(log_degree + node, mask=real, other=0.0)
    return first[None, :] + logarithm[:, None] * second[None, :]


@triton.jit
def forward_projections(
    v, v_parts, v_moments, v_mean, v_variance, v_scale, v_shift, momentum, query, query_bias, key, value, x_kept, q,
    k, w, filled, epsilon, D: tl.constexpr, splits, NORM: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """x, and what the attention reads of it. NORM: v is read through a norm."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    _, _, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    if NORM:
        x = normed(
            v, v_parts, v_moments, v_mean, v_variance, momentum, v_scale, v_shift, target, inside, nodes, splits,
            columns, epsilon, D, PARTS, BLOCK_N,
        )  # fmt: skip
    else:
        x = tl.load(v + target, mask=inside, other=0.0)
    tl.store(x_kept + target, x, mask=inside)
    bias = tl.load(query_bias + columns, mask=columns < D, other=0.0)
    out = tl.dot(x, transposed(query, columns, D), input_precision=PRECISION) + bias[None, :]
    tl.store(q + target, out, mask=inside)
    tl.store(k + target, tl.dot(x, transposed(key, columns, D), input_precision=PRECISION), mask=inside)
    tl.store(w + target, tl.dot(x, transposed(value, columns, D), input_precision=PRECISION), mask=inside)


@triton.jit
def forward_output(
    x, values, states, mix, log_degree, theta1, theta2, linear, bias, y_kept, t, t_parts, filled, splits,
    D: tl.constexpr, CHANNELS: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """y and t."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    first, second, matrix, added = projection(theta1, theta2, linear, bias, columns, D)
    heads = within_heads(mix, columns, columns, D, CHANNELS)
    y = tl.load(values + target, mask=inside, other=0.0)
    y = tl.dot(tl.load(states + target, mask=inside, other=0.0), heads, y, input_precision=PRECISION)
    tl.store(y_kept + target, y, mask=inside)
    scaled = y * scaler(log_degree, first, second, node, real)
    out = tl.dot(scaled, matrix, input_precision=PRECISION) + added[None, :]
    out += tl.load(x + target, mask=inside, other=0.0)
    tl.store(t + target, out, mask=inside)
    write_tile_moments(t_parts, tl.program_id(0), out, real, inside, columns, splits, D)


@triton.jit
def backward_output(
    g, t, t_moments, t_scale, t_sums, part_stride, splits, y, mix, log_degree, theta1, theta2, linear, residual,
    scaled_kept, gradient_values, gradient_states, theta_sums, filled, epsilon, D: tl.constexpr,
    CHANNELS: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """G, ∂y (which is that of the values), ∂(Σ α ê), and the sums ∂θ₁ and ∂θ₂."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, real, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    pull = through_norm(
        g, t, t_moments, t_scale, t_sums, part_stride, target, inside, columns, D, splits, epsilon, PARTS
    )
    tl.store(residual + target, pull, mask=inside)
    first = tl.load(theta1 + columns, mask=columns < D, other=0.0)
    second = tl.load(theta2 + columns, mask=columns < D, other=0.0)
    factor = scaler(log_degree, first, second, node, real)
    values = tl.load(y + target, mask=inside, other=0.0)
    tl.store(scaled_kept + target, values * factor, mask=inside)
    back = tl.dot(pull, square(linear, columns, D), input_precision=PRECISION)
    product = back * values
    logarithm = tl.load(log_degree + node, mask=real, other=0.0)
    part = theta_sums + tl.program_id(0) * part_stride
    write_two_sums(part, D, columns, tl.sum(product, axis=0), tl.sum(product * logarithm[:, None], axis=0))
    back *= factor
    tl.store(gradient_values + target, back, mask=inside)
    heads = tl.trans(within_heads(mix, columns, columns, D, CHANNELS))
    tl.store(gradient_states + target, tl.dot(back, heads, input_precision=PRECISION), mask=inside)


@triton.jit
def backward_projections(
    gq, gk, gw, residual, query, key, value, v, v_moments, v_sums, part_stride, gx, filled, epsilon, N,
    D: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂x, and its sums behind the norm of v where v is read through one."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    node, _, target, inside = row_tile(tl.program_id(0) * BLOCK_N, nodes, columns, D, BLOCK_N)
    passed = tl.load(residual + target, mask=inside, other=0.0)
    pull = tl.load(gq + target, mask=inside, other=0.0)
    passed = tl.dot(pull, square(query, columns, D), passed, input_precision=PRECISION)
    pull = tl.load(gk + target, mask=inside, other=0.0)
    passed = tl.dot(pull, square(key, columns, D), passed, input_precision=PRECISION)
    pull = tl.load(gw + target, mask=inside, other=0.0)
    passed = tl.dot(pull, square(value, columns, D), passed, input_precision=PRECISION)
    # Zero in padding: sums over all N rows may follow.
    tl.store(gx + target, passed, mask=(node < N)[:, None] & (columns < D)[None, :])
    if NORM:
        part = tl.program_id(0)
        write_norm_sums(v_sums, part, part_stride, passed, v, v_moments, target, inside, columns, epsilon, D)
