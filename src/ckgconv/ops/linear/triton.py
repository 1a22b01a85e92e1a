"""A linear map whose bias has its gradient from one launch: ∂b = Σ_r g_r.

Legend: R rows, K channels in, D channels out.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.derivatives import will_be_differentiated

CHANNELS, ROWS = 8, 512  # of a tile


class Linear(torch.autograd.Function):
    """x [R, K], W [D, K], b [D] → [R, D]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        at_x = gradient @ weight if ctx.needs_input_grad[0] else None
        at_weight = gradient.T @ x if ctx.needs_input_grad[1] else None
        return at_x, at_weight, gradient.sum(0) if will_be_differentiated(gradient) else column_sums(gradient)


def column_sums(x: Tensor) -> Tensor:
    """[D] from float32 x [R, D], in a fixed order."""
    x, (rows, width) = x.contiguous(), x.shape
    sums = x.new_empty(width)
    add_columns[(-(-width // CHANNELS),)](x, sums, rows, D=width, BLOCK_R=ROWS, BLOCK_D=CHANNELS, num_warps=8)
    return sums


@triton.jit
def add_columns(x, sums, rows, D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """The sums of a few columns."""
    columns = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    total = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(0, rows, BLOCK_R):
        row = start + tl.arange(0, BLOCK_R)
        inside = (row < rows)[:, None] & (columns < D)[None, :]
        total += tl.load(x + row[:, None] * D + columns[None, :], mask=inside, other=0.0)
    tl.store(sums + columns, tl.sum(total, axis=0), mask=columns < D)
