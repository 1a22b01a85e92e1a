"""Rows of a learned table, y_m = T[a_m]: `triton` on a GPU where it fits, torch's embedding elsewhere."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops import dispatch
from ckgconv.ops.dispatch import fits

# Where the table's gradient is computed: a context for launches that read the given tensors.
Place = Callable[..., AbstractContextManager[None]]


def in_place(*inputs: Tensor) -> AbstractContextManager[None]:
    """On the current stream."""
    return nullcontext()


def lookup(index: Tensor, table: Tensor, gradient_place: Place = in_place) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    if dispatch.uses_triton(table) and fits(table, len(index), table.shape[1]):
        from ckgconv.ops.lookup import triton

        return triton.lookup(index, table, gradient_place)
    return F.embedding(index, table)


def lookup_onto(index: Tensor, place: Tensor, table: Tensor, rows: int, gradient_place: Place = in_place) -> Tensor:
    """[R, D], zero but where something is placed: y_r = Σ_{m: place_m = r} T[a_m]; index and place are int64 [M].

    Three on one place would add up in any order, so a run that asks for repeatable sums has torch's.
    """
    repeatable = torch.are_deterministic_algorithms_enabled()
    if dispatch.uses_triton(table) and fits(table, rows, table.shape[1]) and not repeatable:
        from ckgconv.ops.lookup import triton

        return triton.lookup_onto(index, place, table, rows, gradient_place)
    return table.new_zeros(rows, table.shape[1]).index_add(0, place, lookup(index, table))


__all__ = ["Place", "in_place", "lookup", "lookup_onto"]
