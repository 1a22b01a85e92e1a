"""Rows of a learned table on a GPU; its gradient as a product with indicators.

    y_m = T[a_m]                        ∂T = Σ_m 1[a_m = v] g_m
    y_r = Σ_{m: place_m = r} T[a_m]     ∂T = Σ_m 1[a_m = v] g_{place_m}

The library's gradient sorts the indices first, in a dozen launches; these are two, with sums in a fixed order.

Legend: M rows, V rows of the table, D width, R rows on which they are placed, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from ckgconv.ops.launch import block, power_of_two, product_precision
from ckgconv.ops.lookup import Place, in_place
from ckgconv.ops.reductions import summed

ROWS = 64  # at once
FEW = 8  # of a program that places them
PARTS = 64  # at most
PARTS_VALUES = 2**22  # of all parts together
TILE = 64  # rows of the table of one program


@triton.jit
def table_gradient(
    g, index, places, parts, rows, V: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_V: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Parts [S, V, D] of ∂T: a program owns some rows of the table and every S-th tile of g [M, D].

    Where there are places, g is [R, D] and read there.
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
        if places is not None:
            source = tl.load(places + row, mask=row < rows, other=0)
        values = tl.load(g + source[:, None] * D + columns[None, :], mask=inside, other=0.0)
        indicator = (entry[:, None] == chosen[None, :]).to(tl.float32)
        total = tl.dot(indicator, values, total, input_precision=PRECISION)
    inside = (entry < V)[:, None] & (columns < D)[None, :]
    place = (split * V + entry)[:, None] * D + columns[None, :]
    tl.store(parts + place, total, mask=inside)


@triton.jit
def add_rows(table, index, places, y, rows, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
    """y [R, D] += T[a_m] at their places; few share one, and those of two add up to the same in any order."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_D)
    entry = tl.load(index + row, mask=row < rows, other=0)
    target = tl.load(places + row, mask=row < rows, other=0)
    inside = (row < rows)[:, None] & (columns < D)[None, :]
    values = tl.load(table + entry[:, None] * D + columns[None, :], mask=inside, other=0.0)
    tl.atomic_add(y + target[:, None] * D + columns[None, :], values, mask=inside, sem="relaxed")


def lookup(index: Tensor, table: Tensor, gradient_place: Place = in_place) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    return Lookup.apply(index, table, gradient_place)


def lookup_onto(index: Tensor, place: Tensor, table: Tensor, rows: int, gradient_place: Place = in_place) -> Tensor:
    """[R, D] from int64 [M], twice, and a table [V, D]."""
    return LookupOnto.apply(index, place, table, rows, gradient_place)


class Lookup(torch.autograd.Function):
    """index, table, place of the gradient → rows."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor, gradient_place: Place) -> Tensor:
        # The kernel reads neighbours; a column of several attributes has others between.
        index = index.contiguous()
        ctx.save_for_backward(index)
        ctx.shape, ctx.place = table.shape, gradient_place
        return table.index_select(0, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None]:
        (index,) = ctx.saved_tensors
        gradient = gradient.contiguous()
        with ctx.place(gradient, index):
            return None, _table_gradient(gradient, index, None, ctx.shape), None


class LookupOnto(torch.autograd.Function):
    """index, places, table, R, place of the gradient → rows on their places."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, place: Tensor, table: Tensor, rows: int, gradient_place: Place) -> Tensor:
        index, place, table = index.contiguous(), place.contiguous(), table.contiguous()
        ctx.save_for_backward(index, place)
        ctx.shape, ctx.place = table.shape, gradient_place
        width = table.shape[1]
        y = table.new_zeros(rows, width)
        if len(index):
            tile = {"BLOCK_M": FEW, "BLOCK_D": power_of_two(width)}
            add_rows[(-(-len(index) // FEW),)](table, index, place, y, len(index), D=width, **tile)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor, None, None]:
        index, place = ctx.saved_tensors
        gradient = gradient.contiguous()
        with ctx.place(gradient, index, place):
            return None, None, _table_gradient(gradient, index, place, ctx.shape), None, None


def _table_gradient(gradient: Tensor, index: Tensor, place: Tensor | None, shape: torch.Size) -> Tensor:
    """∂T [V, D]."""
    entries, width = shape
    tile = min(TILE, block(entries))
    splits = max(1, min(PARTS, -(-len(index) // ROWS), PARTS_VALUES // (entries * width)))
    parts = gradient.new_empty(splits, entries, width)
    table_gradient[(splits, -(-entries // tile))](
        gradient, index, place, parts, len(index), V=entries, D=width, PRECISION=product_precision(), BLOCK_M=ROWS,
        BLOCK_V=tile, BLOCK_D=max(16, power_of_two(width)), num_warps=4 if width <= 64 else 8, num_stages=1,
    )  # fmt: skip
    return summed(parts)
