"""Rows of a learned table, y_m = T[a_m]: `triton` on a GPU where it fits, torch's embedding elsewhere."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops import dispatch
from ckgconv.ops.dispatch import fits

# The stream on which the table's gradient is computed: a context for launches that read the given tensors.
StreamContext = Callable[..., AbstractContextManager[None]]


def current_stream(*inputs: Tensor) -> AbstractContextManager[None]:
    """The stream of the backward pass itself."""
    return nullcontext()


def lookup(index: Tensor, table: Tensor, gradient_stream: StreamContext = current_stream) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    if dispatch.uses_triton(table) and fits(table, len(index), table.shape[1]):
        from ckgconv.ops.lookup import triton

        return triton.lookup(index, table, gradient_stream)
    return F.embedding(index, table)


def lookup_onto(
    index: Tensor, target: Tensor, table: Tensor, rows: int, gradient_stream: StreamContext = current_stream
) -> Tensor:
    """[R, D] y_r = Σ_{m: target_m = r} T[a_m], zero in rows that are nobody's target; index and target are int64 [M].

    Three or more values on one row would add up in any order, so deterministic runs use torch.
    """
    repeatable = torch.are_deterministic_algorithms_enabled()
    if dispatch.uses_triton(table) and fits(table, rows, table.shape[1]) and not repeatable:
        from ckgconv.ops.lookup import triton

        return triton.lookup_onto(index, target, table, rows, gradient_stream)
    return table.new_zeros(rows, table.shape[1]).index_add(0, target, lookup(index, table))


__all__ = ["StreamContext", "current_stream", "lookup", "lookup_onto"]
