"""Rows of a learned table on a GPU; its gradient as a product with indicators.

    y_m = T[a_m]        ∂T = Σ_m 1[a_m = v] g_m

The library's gradient sorts the indices first, in a dozen launches; these are two, with sums in a fixed order.

Legend: M rows, V rows of the table, D width, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from ckgconv.ops.beside import beside
from ckgconv.ops.fused import block, power_of_two, product_precision
from ckgconv.ops.sums import summed

ROWS = 64  # at once
PARTS = 64  # at most
PARTS_VALUES = 2**22  # of all parts together
TILE = 64  # rows of the table of one program


@triton.jit
def table_gradient(
    g,
    index,
    parts,
    rows,
    V: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Parts [S, V, D] of ∂T: a program owns some rows of the table and every S-th tile of g [M, D]."""
    split, splits = tl.program_id(0), tl.num_programs(0)
    entry = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    columns = tl.arange(0, BLOCK_D)
    total = tl.zeros([BLOCK_V, BLOCK_D], tl.float32)
    for start in range(split * BLOCK_M, rows, splits * BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        chosen = tl.load(index + row, mask=row < rows, other=-1)
        inside = (row < rows)[:, None] & (columns < D)[None, :]
        values = tl.load(g + row[:, None] * D + columns[None, :], mask=inside, other=0.0)
        indicator = (entry[:, None] == chosen[None, :]).to(tl.float32)
        total = tl.dot(indicator, values, total, input_precision=PRECISION)
    inside = (entry < V)[:, None] & (columns < D)[None, :]
    place = (split * V + entry)[:, None] * D + columns[None, :]
    tl.store(parts + place, total, mask=inside)


def lookup(index: Tensor, table: Tensor) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    return Lookup.apply(index, table)


class Lookup(torch.autograd.Function):
    """index, table → rows."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor) -> Tensor:
        # The kernel reads neighbours; a column of several attributes has others between.
        index = index.contiguous()
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table.index_select(0, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        gradient = gradient.contiguous()
        entries, width = ctx.shape
        tile = min(TILE, block(entries))
        splits = max(1, min(PARTS, -(-len(index) // ROWS), PARTS_VALUES // (entries * width)))
        with beside(gradient, index):
            parts = gradient.new_empty(splits, entries, width)
            table_gradient[(splits, -(-entries // tile))](
                gradient,
                index,
                parts,
                len(index),
                V=entries,
                D=width,
                PRECISION=product_precision(),
                BLOCK_M=ROWS,
                BLOCK_V=tile,
                BLOCK_D=max(16, power_of_two(width)),
                num_warps=4 if width <= 64 else 8,
                num_stages=1,
            )
            return None, summed(parts)
