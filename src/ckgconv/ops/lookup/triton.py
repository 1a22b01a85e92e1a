"""Rows of a learned table on a GPU; its gradient as a product with indicators.

    y_m = T[a_m]                        ∂T = Σ_m 1[a_m = v] g_m
    y_r = Σ_{m: target_m = r} T[a_m]     ∂T = Σ_m 1[a_m = v] g_{target_m}

Torch's gradient sorts the indices first, in a dozen launches; these are two, with sums in a fixed order.

Legend: M indices, V rows of the table, D width, R rows of the result, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.derivatives import will_be_differentiated
from ckgconv.ops.launch import power_of_two, product_precision, tile_width
from ckgconv.ops.lookup import StreamContext, current_stream
from ckgconv.ops.reductions import summed

ROWS = 64  # indices of a tile of the gradient
FEW = 8  # indices of a program that adds rows
PARTS = 64  # at most
PARTS_VALUES = 2**22  # of all parts together, at most
TILE = 64  # rows of the table per program


@triton.jit
def table_gradient(
    g, index, targets, parts, rows, V: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_V: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Parts [S, V, D] of ∂T: a program owns some rows of the table and every S-th tile of g [M, D].

    Where targets are given, g is [R, D] and read at them.
    """
    split, splits = tl.program_id(0), tl.num_programs(0)
    entry = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    columns = tl.arange(0, BLOCK_D)
    total = tl.zeros([BLOCK_V, BLOCK_D], tl.float32)
    for start in range(split * BLOCK_M, rows, splits * BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        chosen = tl.load(index + row, mask=row < rows, other=-1)
        inside = (row < rows)[:, None] & (columns < D)[None, :]
        source = row
        if targets is not None:
            source = tl.load(targets + row, mask=row < rows, other=0)
        values = tl.load(g + source[:, None] * D + columns[None, :], mask=inside, other=0.0)
        indicator = (entry[:, None] == chosen[None, :]).to(tl.float32)
        total = tl.dot(indicator, values, total, input_precision=PRECISION)
    inside = (entry < V)[:, None] & (columns < D)[None, :]
    place = (split * V + entry)[:, None] * D + columns[None, :]
    tl.store(parts + place, total, mask=inside)


@triton.jit
def add_rows(table, index, targets, y, rows, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
    """y [R, D] += T[a_m] at their targets; few share a row, and two values add up to the same in either order."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_D)
    entry = tl.load(index + row, mask=row < rows, other=0)
    target = tl.load(targets + row, mask=row < rows, other=0)
    inside = (row < rows)[:, None] & (columns < D)[None, :]
    values = tl.load(table + entry[:, None] * D + columns[None, :], mask=inside, other=0.0)
    tl.atomic_add(y + target[:, None] * D + columns[None, :], values, mask=inside, sem="relaxed")


def lookup(index: Tensor, table: Tensor, gradient_stream: StreamContext = current_stream) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    return Lookup.apply(index, table, gradient_stream)


def lookup_onto(index: Tensor, target: Tensor, table: Tensor, rows: int, gradient_stream: StreamContext) -> Tensor:
    """[R, D] from int64 [M], twice, and a table [V, D]."""
    return LookupOnto.apply(index, target, table, rows, gradient_stream)


class Lookup(torch.autograd.Function):
    """index, table, stream of the gradient → rows."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor, gradient_stream: StreamContext) -> Tensor:
        # The launch reads contiguous indices; a column of several attributes is strided.
        index = index.contiguous()
        ctx.save_for_backward(index)
        ctx.shape, ctx.stream = table.shape, gradient_stream
        return table.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None]:
        (index,) = ctx.saved_tensors
        if will_be_differentiated(gradient):
            return None, gradient.new_zeros(ctx.shape).index_add(0, index, gradient), None
        gradient = gradient.contiguous()
        with ctx.stream(gradient, index):
            return None, _table_gradient(gradient, index, None, ctx.shape), None


class LookupOnto(torch.autograd.Function):
    """index, targets, table, R, stream of the gradient → sums of rows at their targets."""

    @staticmethod
    def forward(
        ctx: Any, index: Tensor, target: Tensor, table: Tensor, rows: int, gradient_stream: StreamContext
    ) -> Tensor:
        index, target, table = index.contiguous(), target.contiguous(), table.contiguous()
        ctx.save_for_backward(index, target)
        ctx.shape, ctx.stream = table.shape, gradient_stream
        width = table.shape[1]
        y = table.new_zeros(rows, width)
        if len(index):
            tile = {"BLOCK_M": FEW, "BLOCK_D": power_of_two(width)}
            add_rows[(-(-len(index) // FEW),)](table, index, target, y, len(index), D=width, **tile)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor, None, None]:
        index, target = ctx.saved_tensors
        if will_be_differentiated(gradient):
            pulled = gradient.new_zeros(ctx.shape).index_add(0, index, gradient.index_select(0, target))
            return None, None, pulled, None, None
        gradient = gradient.contiguous()
        with ctx.stream(gradient, index, target):
            return None, None, _table_gradient(gradient, index, target, ctx.shape), None, None


def _table_gradient(gradient: Tensor, index: Tensor, target: Tensor | None, shape: torch.Size) -> Tensor:
    """∂T [V, D]."""
    entries, width = shape
    tile = min(TILE, tile_width(entries))
    splits = max(1, min(PARTS, -(-len(index) // ROWS), PARTS_VALUES // (entries * width)))
    parts = gradient.new_empty(splits, entries, width)
    table_gradient[(splits, -(-entries // tile))](
        gradient, index, target, parts, len(index), V=entries, D=width, PRECISION=product_precision(), BLOCK_M=ROWS,
        BLOCK_V=tile, BLOCK_D=max(16, power_of_two(width)), num_warps=4 if width <= 64 else 8, num_stages=1,
    )  # fmt: skip
    return summed(parts)
