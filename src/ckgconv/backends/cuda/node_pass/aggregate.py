"""The convolution in two launches, for nodes with many senders: the sum over senders, then the projection.

aggregate     x = BN(v);  y = 1/|supp| Σ x_j ⊙ ψ_ij
project       t = x + drop( W (y ⊙ (θ₁ + √d θ₂)) + b )         and the moments of t

The sum reads ψ, which is large: tiles of four nodes keep every SM busy, while the product needs sixteen.

Legend: N nodes, P pairs, D width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.backends.cuda.node_pass.forward_kernels import (
    branch,
    kernel_rows,
    node_rows,
    projection,
    senders,
    sum_over_senders,
)
from ckgconv.backends.cuda.node_pass.norm import read_norm
from ckgconv.ops.tiles import merge_tile, no_moments, row_cells, row_tile, write_parts


@triton.jit
def aggregate(
    v, v_parts, v_moments, running_mean, running_variance, momentum, v_scale, v_shift, psi, rowptr, sender,
    support_size, x, y, filled, epsilon, D: tl.constexpr, splits, PITCH: tl.constexpr, NORM: tl.constexpr,
    GIVEN: tl.constexpr, TILE: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, BLOCK_D: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    """x and y of tiles of BLOCK_N nodes; TILE is that of the launch that wrote the parts of v."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    slope = tl.zeros([BLOCK_D], tl.float32)
    moved = tl.zeros([BLOCK_D], tl.float32)
    if NORM:
        mean, slope = read_norm(
            v_parts, v_moments, running_mean, running_variance, momentum, v_scale, splits, nodes, D, columns,
            epsilon, GIVEN, False, PARTS, TILE,
        )  # fmt: skip
        moved = tl.load(v_shift + columns, mask=columns < D, other=0.0) - mean * slope
    for start in range(tl.program_id(0) * BLOCK_N, nodes, tl.num_programs(0) * BLOCK_N):
        node = start + tl.arange(0, BLOCK_N)
        real = node < nodes
        begin = tl.load(rowptr + node, mask=real, other=0).to(tl.int32)
        length = tl.load(rowptr + node + 1, mask=real, other=0).to(tl.int32) - begin
        size = tl.load(support_size + node, mask=real, other=1.0)
        place = tl.arange(0, CHUNK)
        stored = place[None, :] < length[:, None]
        other, following = senders(sender, begin, length, place), senders(sender, begin, length, place + CHUNK)
        kernel = kernel_rows(psi, begin[:, None] + place[None, :], stored, columns, PITCH)
        values = node_rows(v, other, stored, columns, D)
        summed = sum_over_senders(
            v, psi, sender, begin, length, kernel, values, following, slope, moved, columns, D, PITCH, CHUNK, NORM
        )
        target, inside = row_cells(node, real, columns, D)
        own = tl.load(v + target, mask=inside, other=0.0)
        if NORM:
            own = own * slope[None, :] + moved[None, :]
        tl.store(x + target, own, mask=inside)
        tl.store(y + target, summed / tl.maximum(size, 1.0)[:, None], mask=inside)


@triton.jit
def project(
    x, y, degree, theta1, theta2, linear, bias, t, t_parts, filled, seed, draw, level, factor, path,
    D: tl.constexpr, splits, TRACK: tl.constexpr, DROP: tl.constexpr, PATH: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """t of every `splits`-th tile of nodes, and one part of its moments."""
    split = tl.program_id(0)
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    first, second, matrix, added = projection(theta1, theta2, linear, bias, columns, D)
    total_t, mean_t, squares_t = no_moments(BLOCK_D)
    for start in range(split * BLOCK_N, nodes, splits * BLOCK_N):
        node, real, target, inside = row_tile(start, nodes, columns, D, BLOCK_N)
        root = tl.sqrt(tl.load(degree + node, mask=real, other=0.0))
        scaled = tl.load(y + target, mask=inside, other=0.0) * (first[None, :] + root[:, None] * second[None, :])
        out = tl.dot(scaled, matrix, input_precision=PRECISION) + added[None, :]
        out = branch(out, seed, draw, node, nodes, level, factor, path, DROP, PATH)
        out += tl.load(x + target, mask=inside, other=0.0)
        tl.store(t + target, out, mask=inside)
        if TRACK:
            values = tl.where(inside, out, 0.0)
            total_t, mean_t, squares_t = merge_tile(total_t, mean_t, squares_t, values, real.to(tl.float32))
    if TRACK:
        write_parts(t_parts + split * D, splits * D, D, columns, total_t, mean_t, squares_t)
