"""Triton kernels of the node pass, forward: two per block.

forward_convolution   y = 1/|supp| Σ x_j ⊙ ψ_ij;  t = x + drop( W (y ⊙ (θ₁ + √d θ₂)) + b )         and the moments of t
forward_ffn           u = BN(t);  v = u + drop( W₂ GELU(W₁ u + b₁) + b₂ )                          and the moments of v

At 740 nodes a launch is all latency, so it ends only where the statistics of all nodes are needed, and starts before
the previous one has ended: weights, ψ and sender indices do not depend on that one and are loaded meanwhile. x of a
block is never written: it is BN(v) of the previous block, applied as v is read.

Legend: N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.node_pass.norm import read_norm
from ckgconv.ops.tiles import gelu, kept, merge_tile, no_moments, row_cells, row_tile, wait_for_last, write_parts


@triton.jit
def dropped(values, seed, rows, level, factor, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Dropout of a tile [ROWS, COLUMNS]."""
    return tl.where(kept(seed, rows, level, ROWS, COLUMNS), values * factor, 0.0)


@triton.jit
def branch(values, seed, draw, node, nodes, level, factor, path, DROP: tl.constexpr, PATH: tl.constexpr):
    """drop(values) of a tile of nodes, or their gradient: single values are dropped, then whole branches."""
    if DROP:
        values = dropped(values, tl.load(seed) + draw, node, level, factor, values.shape[0], values.shape[1])
    if PATH:
        values *= tl.load(path + node, mask=node < nodes, other=0.0)[:, None]
    return values


@triton.jit
def senders(sender, begin, length, place):
    """[N, C] the senders of each node at the positions [C] of its list."""
    entry = begin[:, None] + place[None, :]
    return tl.load(sender + entry, mask=place[None, :] < length[:, None], other=0).to(tl.int32)


@triton.jit
def kernel_rows(psi, row, stored, columns, PITCH: tl.constexpr):
    """[N, C, D] rows of ψ, zeros where none is stored."""
    there = stored[:, :, None] & (columns < PITCH)[None, None, :]
    return tl.load(psi + row[:, :, None] * PITCH + columns[None, None, :], mask=there, other=0.0)


@triton.jit
def node_rows(values, node, stored, columns, D: tl.constexpr):
    """[N, C, D] rows of a tensor over nodes."""
    there = stored[:, :, None] & (columns < D)[None, None, :]
    return tl.load(values + node[:, :, None] * D + columns[None, None, :], mask=there, other=0.0)


@triton.jit
def projection(theta1, theta2, linear, bias, columns, D: tl.constexpr):
    """θ₁, θ₂ [D], Wᵀ [D, D] and b [D] of the degree scaler and the projection that follow a convolution."""
    real = columns < D
    first, second = tl.load(theta1 + columns, mask=real, other=0.0), tl.load(theta2 + columns, mask=real, other=0.0)
    cell = columns[None, :] * D + columns[:, None]
    matrix = tl.load(linear + cell, mask=real[:, None] & real[None, :], other=0.0)
    return first, second, matrix, tl.load(bias + columns, mask=real, other=0.0)


@triton.jit
def sum_over_senders(
    v, psi, sender, begin, length, kernel, values, following, slope, moved, columns, D: tl.constexpr,
    PITCH: tl.constexpr, CHUNK: tl.constexpr, NORM: tl.constexpr,
):  # fmt: skip
    """[N, D] Σ_j x_j ⊙ ψ_ij of a tile of nodes.

    The caller has loaded the first chunk of ψ and v and the senders of the second: sender indices are read two chunks
    ahead, so that no load waits for another one.
    """
    # Summed over chunks first: the senders of one chunk are held by different threads.
    products = tl.zeros([begin.shape[0], CHUNK, columns.shape[0]], tl.float32)
    for chunk in range(0, tl.max(length, axis=0), CHUNK):
        if NORM:
            values = values * slope[None, None, :] + moved[None, None, :]
        products += kernel.to(tl.float32) * values
        place = chunk + CHUNK + tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        other, following = following, senders(sender, begin, length, place + CHUNK)
        kernel = kernel_rows(psi, begin[:, None] + place[None, :], stored, columns, PITCH)
        values = node_rows(v, other, stored, columns, D)
    return tl.sum(products, axis=1)


@triton.jit
def forward_convolution(
    v, v_parts, v_moments, running_mean, running_variance, momentum, v_scale, v_shift, psi, rowptr, sender,
    support_size, degree, theta1, theta2, linear, bias, y, t, t_parts, filled, seed, draw, level, factor, path,
    epsilon, D: tl.constexpr, splits, PITCH: tl.constexpr, NORM: tl.constexpr, GIVEN: tl.constexpr, TRACK: tl.constexpr,
    DROP: tl.constexpr, PATH: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_D: tl.constexpr, PARTS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if not NORM:
        # The first launch of the pass: ψ, which later ones load ahead, may be written by the launch right before it.
        wait_for_last(EARLY)
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    real_column = columns < D
    first, second, matrix, added = projection(theta1, theta2, linear, bias, columns, D)
    slope = tl.zeros([BLOCK_D], tl.float32)
    moved = tl.zeros([BLOCK_D], tl.float32)
    total_t, mean_t, squares_t = no_moments(BLOCK_D)
    for start in range(split * BLOCK_N, nodes, splits * BLOCK_N):
        node = start + tl.arange(0, BLOCK_N)
        real = node < nodes
        begin = tl.load(rowptr + node, mask=real, other=0).to(tl.int32)
        length = tl.load(rowptr + node + 1, mask=real, other=0).to(tl.int32) - begin
        size = tl.load(support_size + node, mask=real, other=1.0)
        root = tl.sqrt(tl.load(degree + node, mask=real, other=0.0))
        place = tl.arange(0, CHUNK)
        other, following = senders(sender, begin, length, place), senders(sender, begin, length, place + CHUNK)
        kernel = kernel_rows(psi, begin[:, None] + place[None, :], place[None, :] < length[:, None], columns, PITCH)
        wait_for_last(EARLY)
        values = node_rows(v, other, place[None, :] < length[:, None], columns, D)
        target, inside = row_cells(node, real, columns, D)
        own = tl.load(v + target, mask=inside, other=0.0)
        if NORM:
            if start == split * BLOCK_N:
                offset = tl.load(v_shift + columns, mask=real_column, other=0.0)
                mean, slope = read_norm(
                    v_parts, v_moments, running_mean, running_variance, momentum, v_scale, splits, nodes, D, columns,
                    epsilon, GIVEN, False, PARTS, BLOCK_N,
                )  # fmt: skip
                moved = offset - mean * slope
            own = own * slope[None, :] + moved[None, :]
        summed = sum_over_senders(
            v, psi, sender, begin, length, kernel, values, following, slope, moved, columns, D, PITCH, CHUNK, NORM
        )
        summed = summed / tl.maximum(size, 1.0)[:, None]
        tl.store(y + target, summed, mask=inside)
        scaled = summed * (first[None, :] + root[:, None] * second[None, :])
        out = tl.dot(scaled, matrix, input_precision=PRECISION) + added[None, :]
        out = own + branch(out, seed, draw, node, nodes, level, factor, path, DROP, PATH)
        tl.store(t + target, out, mask=inside)
        if TRACK:
            values = tl.where(inside, out, 0.0)
            total_t, mean_t, squares_t = merge_tile(total_t, mean_t, squares_t, values, real.to(tl.float32))
    wait_for_last(EARLY)
    if TRACK:
        write_parts(t_parts + split * D, splits * D, D, columns, total_t, mean_t, squares_t)


@triton.jit
def hidden_matrices(linear_in, linear_out, inner, columns, D: tl.constexpr, H: tl.constexpr):
    """W₁ᵀ [D, inner] and W₂ᵀ [inner, D] of the hidden channels `inner`."""
    there = (inner < H)[None, :] & (columns < D)[:, None]
    matrix_in = tl.load(linear_in + inner[None, :] * D + columns[:, None], mask=there, other=0.0)
    there = (inner < H)[:, None] & (columns < D)[None, :]
    matrix_out = tl.load(linear_out + columns[None, :] * H + inner[:, None], mask=there, other=0.0)
    return matrix_in, matrix_out


@triton.jit
def forward_ffn(
    t, t_parts, t_moments, running_mean, running_variance, momentum, scale, shift, linear_in, bias_in, linear_out,
    bias_out, v, v_parts, filled, seed, draw, level, factor, path, epsilon, D: tl.constexpr, H: tl.constexpr, splits,
    GIVEN: tl.constexpr, TRACK: tl.constexpr, DROP: tl.constexpr, PATH: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_H: tl.constexpr, PARTS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    offset = tl.load(shift + columns, mask=columns < D, other=0.0)
    added = tl.load(bias_out + columns, mask=columns < D, other=0.0)
    inner = tl.arange(0, BLOCK_H)
    # Both matrices fit into the shared memory of every supported GPU, unless they are split for three tf32 products.
    AHEAD: tl.constexpr = H <= BLOCK_H and PRECISION == "tf32"
    if AHEAD:
        matrix_in, matrix_out = hidden_matrices(linear_in, linear_out, inner, columns, D, H)
    mean = tl.zeros([BLOCK_D], tl.float32)
    slope = tl.zeros([BLOCK_D], tl.float32)
    wait_for_last(EARLY)
    total_v, mean_v, squares_v = no_moments(BLOCK_D)
    for start in range(split * BLOCK_N, nodes, splits * BLOCK_N):
        node, real, target, inside = row_tile(start, nodes, columns, D, BLOCK_N)
        values = tl.load(t + target, mask=inside, other=0.0)
        if start == split * BLOCK_N:
            mean, slope = read_norm(
                t_parts, t_moments, running_mean, running_variance, momentum, scale, splits, nodes, D, columns,
                epsilon, GIVEN, False, PARTS, BLOCK_N,
            )  # fmt: skip
        u = tl.where(inside, (values - mean[None, :]) * slope[None, :] + offset[None, :], 0.0)
        out = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
        for hidden in range(0, H, BLOCK_H):
            if not AHEAD:
                inner = hidden + tl.arange(0, BLOCK_H)
                matrix_in, matrix_out = hidden_matrices(linear_in, linear_out, inner, columns, D, H)
            n = tl.dot(u, matrix_in, input_precision=PRECISION)
            n += tl.load(bias_in + inner, mask=inner < H, other=0.0)[None, :]
            out = tl.dot(gelu(n), matrix_out, out, input_precision=PRECISION)
        out += added[None, :]
        out = u + branch(out, seed, draw, node, nodes, level, factor, path, DROP, PATH)
        tl.store(v + target, out, mask=inside)
        if TRACK:
            values = tl.where(inside, out, 0.0)
            total_v, mean_v, squares_v = merge_tile(total_v, mean_v, squares_v, values, real.to(tl.float32))
    if TRACK:
        write_parts(v_parts + split * D, splits * D, D, columns, total_v, mean_v, squares_v)
