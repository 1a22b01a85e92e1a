"""Sums of rows in a fixed order, one program for each sum.

Legend: N rows, M entries of the index, D channels.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.launch import power_of_two

ROWS = 16  # of a tile


class GatherRows(torch.autograd.Function):
    """x [N, D], index [M], its order → [M, D]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, pointer: Tensor, entries: Tensor) -> Tensor:
        ctx.save_for_backward(index, pointer, entries)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return SumRows.apply(gradient, *ctx.saved_tensors), None, None, None


class SumRows(torch.autograd.Function):
    """x [M, D], index [M], its order → [N, D]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, pointer: Tensor, entries: Tensor) -> Tensor:
        ctx.save_for_backward(index, pointer, entries)
        x, (count, width) = x.contiguous(), (len(pointer) - 1, x.shape[1])
        y = torch.empty(count, width, dtype=x.dtype, device=x.device)
        if count:
            add_rows[(count,)](x, pointer, entries, y, D=width, BLOCK_R=ROWS, BLOCK_D=power_of_two(width), num_warps=4)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return GatherRows.apply(gradient, *ctx.saved_tensors), None, None, None


@triton.jit
def add_rows(x, pointer, entries, y, D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """One row of y."""
    row = tl.program_id(0)
    begin, end = tl.load(pointer + row), tl.load(pointer + row + 1)
    columns = tl.arange(0, BLOCK_D)
    total = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(begin, end, BLOCK_R):
        place = start + tl.arange(0, BLOCK_R)
        entry = tl.load(entries + place, mask=place < end, other=0)
        inside = (place < end)[:, None] & (columns < D)[None, :]
        total += tl.load(x + entry[:, None] * D + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * D + columns, tl.sum(total, axis=0).to(y.dtype.element_ty), mask=columns < D)
