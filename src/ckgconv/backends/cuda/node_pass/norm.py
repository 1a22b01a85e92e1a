"""BatchNorm inside the Triton kernels of the node pass: moments from parts, applied where values are read.

    x = γ (v - μ)/√(σ² + ε) + β

Legend: N nodes, D width, S parts (programs).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl

from ckgconv.ops.tiles import read_parts, read_plain_parts, row_cells, track, write_moments, write_parts


@triton.jit
def norm_moments(
    parts, moments, running_mean, running_variance, momentum, splits, rows, D: tl.constexpr, columns,
    GIVEN: tl.constexpr, WEIGHTED: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """W, μ, σ² of a norm; the first program stores them where they are the batch's."""
    if GIVEN:
        mean = tl.load(running_mean + columns, mask=columns < D, other=0.0)
        variance = tl.load(running_variance + columns, mask=columns < D, other=1.0)
        total = tl.zeros_like(mean)
    else:
        if WEIGHTED:
            total, mean, variance = read_parts(parts, splits * D, splits, D, columns, PARTS)
        else:
            total, mean, variance = read_plain_parts(parts, splits * D, splits, rows, D, columns, PARTS, ROWS)
        if tl.program_id(0) == 0:
            write_moments(moments, D, D, columns, total, mean, variance)
            track(running_mean, running_variance, momentum, D, columns, total, mean, variance)
    return total, mean, variance


@triton.jit
def read_norm(
    parts, moments, running_mean, running_variance, momentum, scale, splits, rows, D: tl.constexpr, columns, epsilon,
    GIVEN: tl.constexpr, WEIGHTED: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """μ and slope γ/√(σ² + ε) of a norm."""
    gamma = tl.load(scale + columns, mask=columns < D, other=0.0)
    _, mean, variance = norm_moments(
        parts, moments, running_mean, running_variance, momentum, splits, rows, D, columns, GIVEN, WEIGHTED, PARTS,
        ROWS,
    )  # fmt: skip
    return mean, gamma / tl.sqrt(variance + epsilon)


@triton.jit
def apply_norm(
    v, v_parts, v_moments, running_mean, running_variance, momentum, scale, shift, x, x_part, filled, epsilon, N,
    D: tl.constexpr, splits, GIVEN: tl.constexpr, WEIGHTED: tl.constexpr, TILE: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """x = BN(v), zero in padding. W, μ = β and M₂ of x are written to `x_part` where it is given."""
    nodes = tl.load(filled).to(tl.int32)
    columns = tl.arange(0, BLOCK_D)
    gamma = tl.load(scale + columns, mask=columns < D, other=0.0)
    offset = tl.load(shift + columns, mask=columns < D, other=0.0)
    total, mean, variance = norm_moments(
        v_parts, v_moments, running_mean, running_variance, momentum, splits, nodes, D, columns, GIVEN, WEIGHTED,
        PARTS, TILE,
    )  # fmt: skip
    slope = gamma / tl.sqrt(variance + epsilon)
    if x_part is not None:  # noqa: SIM102  decided at compile time
        if tl.program_id(0) == 0:
            write_parts(x_part, D, D, columns, total, offset, total * variance * slope * slope)
    for start in range(tl.program_id(0) * BLOCK_N, N, tl.num_programs(0) * BLOCK_N):
        node = start + tl.arange(0, BLOCK_N)
        target, inside = row_cells(node, node < nodes, columns, D)
        values = tl.load(v + target, mask=inside, other=0.0)
        values = tl.where(inside, (values - mean[None, :]) * slope[None, :] + offset[None, :], 0.0)
        tl.store(x + target, values, mask=(node < N)[:, None] & (columns < D)[None, :])
