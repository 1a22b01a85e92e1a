"""Rows of a matrix by an index, whose gradient is summed in a fixed order.

    y_m = x[a_m]        ∂x_n = Σ_{m: a_m = n} g_m

With an `Order` of the index the sum is one launch on a GPU; torch's deterministic sum sorts the index every time.

Legend: N rows, M entries of the index, D channels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.dispatch import fits


class Order(NamedTuple):
    """Entries of an index by value: those of n are entries[pointer[n]] … entries[pointer[n + 1] - 1]."""

    pointer: Tensor  # [N + 1]
    entries: Tensor  # [M]


def order_of(index: Tensor, count: int) -> Order:
    """The order of an index [M] with values below `count`."""
    values, entries = torch.sort(index, stable=True)
    return Order(torch.searchsorted(values, torch.arange(count + 1, device=index.device)), entries)


def gather_rows(x: Tensor, index: Tensor, order: Order | None) -> Tensor:
    """[M, D] from x [N, D] and int64 [M]."""
    if order is None or not _ordered(x, index):
        return x.index_select(0, index)
    from ckgconv.ops.rows import triton

    return triton.GatherRows.apply(x, index, *order)


def _ordered(x: Tensor, index: Tensor) -> bool:
    return dispatch.uses_triton(x) and fits(x, index.shape[0], x.shape[1])


__all__ = ["Order", "gather_rows", "order_of"]
