"""Triton kernels of the node pass, backward: three per block.

backward_ffn          G = gradient at v through the norm that reads it; ∂u, and its sums behind the norm of t
backward_projection   G = gradient at t through its norm; ∂θ₁, ∂θ₂, ∂y
backward_convolution  ∂x_j = G_j + Σ_i ψ_ij ⊙ ∂y_i / |supp(i)|;  ∂ψ_ij = x_j ⊙ ∂y_i / |supp(i)|

A launch ends only where the statistics of all nodes, or the nodes of a whole graph, are needed. Gradients of matrices
are left to `gradients`, for which the first two launches write both factors, up to row N, a multiple of `PIECE`, with
zeros from the channels to the pitch; in the third, N is the number of nodes.

Legend: N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.node_pass.forward_kernels import branch, kernel_rows, node_rows, senders
from ckgconv.ops.tiles import (
    TINY,
    gelu_and_slope,
    read_moments,
    read_sums,
    row_cells,
    row_tile,
    wait_for_last,
    write_two_sums,
)


@triton.jit
def known_norm(moments, scale, shift, columns, epsilon, D: tl.constexpr):
    """μ, 1/√(σ² + ε), γ and β [D] of a norm whose moments are known."""
    _, mean, variance = read_moments(moments, D, D, columns)
    root = 1.0 / tl.sqrt(variance + epsilon)
    gamma = tl.load(scale + columns, mask=columns < D, other=0.0)
    return mean, root, gamma, tl.load(shift + columns, mask=columns < D, other=0.0)


@triton.jit
def norm_sums(
    g, v, v_moments, sums, part_stride, filled, epsilon, D: tl.constexpr, splits, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Parts of Σg and Σ g v̂, for the gradient that enters the last norm."""
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    _, mean, variance = read_moments(v_moments, D, D, columns)
    root = 1.0 / tl.sqrt(variance + epsilon)
    sum_g = tl.zeros([BLOCK_D], tl.float32)
    sum_gv = tl.zeros([BLOCK_D], tl.float32)
    for start in range(split * BLOCK_N, nodes, splits * BLOCK_N):
        node = start + tl.arange(0, BLOCK_N)
        target, inside = row_cells(node, node < nodes, columns, D)
        pull = tl.load(g + target, mask=inside, other=0.0)
        standard = (tl.load(v + target, mask=inside, other=0.0) - mean[None, :]) * root[None, :]
        sum_g += tl.sum(pull, axis=0)
        sum_gv += tl.sum(pull * standard, axis=0)
    write_two_sums(sums + split * part_stride, D, columns, sum_g, sum_gv)


@triton.jit
def through_norm(
    g, v, moments, scale, sums, part_stride, target, inside, columns, D, splits, epsilon, PARTS: tl.constexpr,
):  # fmt: skip
    """Gradient at v [BLOCK_N, BLOCK_D] from the gradient g at the output of its norm, whose sums are known."""
    total, mean, variance = read_moments(moments, D, D, columns)
    root = 1.0 / tl.sqrt(variance + epsilon)
    slope = tl.load(scale + columns, mask=columns < D, other=0.0) * root
    sum_g = read_sums(sums, splits, part_stride, D, columns, PARTS)
    sum_gv = read_sums(sums + D, splits, part_stride, D, columns, PARTS)
    share = 1.0 / tl.maximum(total, TINY)
    standard = (tl.load(v + target, mask=inside, other=0.0) - mean[None, :]) * root[None, :]
    pull = tl.load(g + target, mask=inside, other=0.0)
    pull = (pull - (sum_g[None, :] + standard * sum_gv[None, :]) * share[None, :]) * slope[None, :]
    return tl.where(inside, pull, 0.0)


@triton.jit
def hidden_weights(linear_in, linear_out, inner, columns, D: tl.constexpr, H: tl.constexpr):
    """W₁ [inner, D] and W₂ [D, inner] of the hidden channels `inner`."""
    there = (inner < H)[:, None] & (columns < D)[None, :]
    matrix_in = tl.load(linear_in + inner[:, None] * D + columns[None, :], mask=there, other=0.0)
    there = (columns < D)[:, None] & (inner < H)[None, :]
    return matrix_in, tl.load(linear_out + columns[:, None] * H + inner[None, :], mask=there, other=0.0)


@triton.jit
def hidden_slope(u, matrix_in, bias_in, hidden_kept, node, inner, N, H: tl.constexpr, PRECISION: tl.constexpr):
    """GELU'(W₁ u + b₁) [BLOCK_N, inner]; GELU itself is kept for the gradient of W₂."""
    n = tl.dot(u, tl.trans(matrix_in), input_precision=PRECISION)
    n += tl.load(bias_in + inner, mask=inner < H, other=0.0)[None, :]
    active, slope = gelu_and_slope(n)
    there = (node < N)[:, None] & (inner < H)[None, :]
    tl.store(hidden_kept + node[:, None] * H + inner[None, :], active, mask=there)
    return slope


@triton.jit
def backward_ffn(
    g, v, v_moments, v_scale, v_sums, v_stride, v_splits, t, t_moments, t_scale, t_shift, t_sums, part_stride,
    linear_in, bias_in, linear_out, gt, u_kept, hidden_kept, gradient_hidden, gradient_out, filled, seed, draw,
    level, factor, path, epsilon, N, D: tl.constexpr, H: tl.constexpr, splits, PITCH: tl.constexpr, DROP: tl.constexpr,
    PATH: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_H: tl.constexpr,
    V_PARTS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    mean, root, gamma, offset = known_norm(t_moments, t_scale, t_shift, columns, epsilon, D)
    sum_g = tl.zeros([BLOCK_D], tl.float32)
    sum_gt = tl.zeros([BLOCK_D], tl.float32)
    for start in range(split * BLOCK_N, N, splits * BLOCK_N):
        node, _, target, inside = row_tile(start, nodes, columns, D, BLOCK_N)
        # Both factors of a matrix's gradient are written for padding too: zeros in one, anything finite in the other.
        kept_place, kept = row_cells(node, node < N, columns, PITCH)
        standard = (tl.load(t + target, mask=inside, other=0.0) - mean[None, :]) * root[None, :]
        standard = tl.where(inside, standard, 0.0)
        u = tl.where(inside, standard * gamma[None, :] + offset[None, :], 0.0)
        tl.store(u_kept + kept_place, u, mask=kept)
        inner = tl.arange(0, BLOCK_H)
        if H <= BLOCK_H:
            matrix_in, matrix_out = hidden_weights(linear_in, linear_out, inner, columns, D, H)
            slope = hidden_slope(u, matrix_in, bias_in, hidden_kept, node, inner, N, H, PRECISION)
        wait_for_last(EARLY)
        pull = through_norm(
            g, v, v_moments, v_scale, v_sums, v_stride, target, inside, columns, D, v_splits, epsilon, V_PARTS
        )
        passed = pull
        pull = branch(pull, seed, draw, node, nodes, level, factor, path, DROP, PATH)
        tl.store(gradient_out + kept_place, pull, mask=kept)
        for hidden in range(0, H, BLOCK_H):
            if H > BLOCK_H:
                inner = hidden + tl.arange(0, BLOCK_H)
                matrix_in, matrix_out = hidden_weights(linear_in, linear_out, inner, columns, D, H)
                slope = hidden_slope(u, matrix_in, bias_in, hidden_kept, node, inner, N, H, PRECISION)
            back = tl.dot(pull, matrix_out, input_precision=PRECISION) * slope
            there = (node < N)[:, None] & (inner < H)[None, :]
            tl.store(gradient_hidden + node[:, None] * H + inner[None, :], back, mask=there)
            passed = tl.dot(back, matrix_in, passed, input_precision=PRECISION)
        tl.store(gt + target, passed, mask=inside)
        passed = tl.where(inside, passed, 0.0)
        sum_g += tl.sum(passed, axis=0)
        sum_gt += tl.sum(passed * standard, axis=0)
    write_two_sums(t_sums + split * part_stride, D, columns, sum_g, sum_gt)


@triton.jit
def backward_projection(
    g, t, t_moments, t_scale, t_sums, part_stride, y, support_size, degree, theta1, theta2, linear, residual,
    gradient_out, scaled_kept, gy, theta_sums, filled, seed, draw, level, factor, path, epsilon, N, D: tl.constexpr,
    splits, PITCH: tl.constexpr, DROP: tl.constexpr, PATH: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, PARTS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    real_column = columns < D
    first = tl.load(theta1 + columns, mask=real_column, other=0.0)
    second = tl.load(theta2 + columns, mask=real_column, other=0.0)
    cell = columns[:, None] * D + columns[None, :]
    matrix = tl.load(linear + cell, mask=real_column[:, None] & real_column[None, :], other=0.0)
    sum_first = tl.zeros([BLOCK_D], tl.float32)
    sum_second = tl.zeros([BLOCK_D], tl.float32)
    for start in range(split * BLOCK_N, N, splits * BLOCK_N):
        node, real, target, inside = row_tile(start, nodes, columns, D, BLOCK_N)
        kept_place, kept = row_cells(node, node < N, columns, PITCH)
        values = tl.load(y + target, mask=inside, other=0.0)
        root = tl.sqrt(tl.load(degree + node, mask=real, other=0.0))
        size = tl.maximum(tl.load(support_size + node, mask=real, other=1.0), 1.0)
        wait_for_last(EARLY)
        pull = through_norm(
            g, t, t_moments, t_scale, t_sums, part_stride, target, inside, columns, D, splits, epsilon, PARTS
        )
        tl.store(residual + target, pull, mask=inside)
        pull = branch(pull, seed, draw, node, nodes, level, factor, path, DROP, PATH)
        tl.store(gradient_out + kept_place, pull, mask=kept)
        back = tl.dot(pull, matrix, input_precision=PRECISION)
        scaler = first[None, :] + root[:, None] * second[None, :]
        tl.store(scaled_kept + kept_place, values * scaler, mask=kept)
        tl.store(gy + target, back * scaler / size[:, None], mask=inside)
        product = tl.where(inside, back * values, 0.0)
        sum_first += tl.sum(product, axis=0)
        sum_second += tl.sum(product * root[:, None], axis=0)
    write_two_sums(theta_sums + split * part_stride, D, columns, sum_first, sum_second)


@triton.jit
def backward_convolution(
    gy, residual, psi, gpsi, sender_ptr, sender_rows, sender_receiver, v, v_moments, v_scale, v_shift, v_sums,
    part_stride, gx, filled, epsilon, N, D: tl.constexpr, splits, PITCH: tl.constexpr, NORM: tl.constexpr,
    BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, BLOCK_D: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    real_column = columns < D
    if NORM:
        mean, root, gamma, offset = known_norm(v_moments, v_scale, v_shift, columns, epsilon, D)
    sum_g = tl.zeros([BLOCK_D], tl.float32)
    sum_gv = tl.zeros([BLOCK_D], tl.float32)
    for start in range(split * BLOCK_N, nodes, splits * BLOCK_N):
        node, real, target, inside = row_tile(start, nodes, columns, D, BLOCK_N)
        own = tl.load(v + target, mask=inside, other=0.0)
        if NORM:
            standard = (own - mean[None, :]) * root[None, :]
            own = standard * gamma[None, :] + offset[None, :]
        begin = tl.load(sender_ptr + node, mask=real, other=0).to(tl.int32)
        length = tl.load(sender_ptr + node + 1, mask=real, other=0).to(tl.int32) - begin
        place = tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        row, other = senders(sender_rows, begin, length, place), senders(sender_receiver, begin, length, place)
        following_row = senders(sender_rows, begin, length, place + CHUNK)
        following = senders(sender_receiver, begin, length, place + CHUNK)
        kernel = kernel_rows(psi, row, stored, columns, PITCH)
        wait_for_last(EARLY)
        pull = node_rows(gy, other, stored, columns, D)
        passed = tl.load(residual + target, mask=inside, other=0.0)
        products = tl.zeros([BLOCK_N, CHUNK, BLOCK_D], tl.float32)
        for chunk in range(0, tl.max(length, axis=0), CHUNK):
            lies = stored[:, :, None] & (columns < PITCH)[None, None, :]
            cells = row[:, :, None] * PITCH + columns[None, None, :]
            tl.store(gpsi + cells, (own[:, None, :] * pull).to(gpsi.dtype.element_ty), mask=lies)
            products += kernel.to(tl.float32) * pull
            # Rows and receivers are read two chunks ahead, so that no load waits for another one.
            place = chunk + CHUNK + tl.arange(0, CHUNK)
            stored = place[None, :] < length[:, None]
            row, other = following_row, following
            following_row = senders(sender_rows, begin, length, place + CHUNK)
            following = senders(sender_receiver, begin, length, place + CHUNK)
            kernel = kernel_rows(psi, row, stored, columns, PITCH)
            pull = node_rows(gy, other, stored, columns, D)
        summed = passed + tl.sum(products, axis=1)
        tl.store(gx + target, summed, mask=inside)
        if NORM:
            summed = tl.where(inside, summed, 0.0)
            sum_g += tl.sum(summed, axis=0)
            sum_gv += tl.sum(summed * standard, axis=0)
    wait_for_last(EARLY)
    if NORM:
        write_two_sums(v_sums + split * part_stride, D, columns, sum_g, sum_gv)
    else:
        # The gradient that leaves the pass is zero in padding: sums over all N rows may follow.
        for start in range(nodes + split * BLOCK_N, N, splits * BLOCK_N):
            node = start + tl.arange(0, BLOCK_N)
            inside = (node < N)[:, None] & real_column[None, :]
            tl.store(gx + node[:, None] * D + columns[None, :], tl.zeros([BLOCK_N, BLOCK_D], tl.float32), mask=inside)
