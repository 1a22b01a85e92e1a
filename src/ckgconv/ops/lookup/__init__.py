"""Rows of a learned table: torch's embedding on a CPU, a product with indicators for its gradient on a GPU.

    y_m = T[a_m]        ∂T = Σ_m 1[a_m = v] g_m

The tables of attributes have at most some hundred rows. As a product the gradient is three launches with sums in a
fixed order; the library's sorts the indices first, in a dozen launches.

Legend: M rows, V rows of the table, D width.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from ckgconv.ops.beside import beside
from ckgconv.ops.fused import fused


def lookup(index: Tensor, table: Tensor) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    return Lookup.apply(index, table) if fused(table) else F.embedding(index, table)


class Lookup(torch.autograd.Function):
    """index, table → rows."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor) -> Tensor:
        # Ahead of time: the gradients of tables are the last that a step waits for.
        with beside(index):
            indicator = index == torch.arange(table.shape[0], device=index.device).unsqueeze(-1)
            ctx.save_for_backward(indicator.to(table.dtype))
        return table.index_select(0, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        (indicator,) = ctx.saved_tensors
        with beside(gradient), torch.autocast(gradient.device.type, enabled=False):
            return None, indicator @ gradient
