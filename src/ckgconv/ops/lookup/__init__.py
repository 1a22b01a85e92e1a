"""Rows of a learned table, y_m = T[a_m]: `triton` on a GPU where it fits, torch's embedding elsewhere."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops import dispatch
from ckgconv.ops.dispatch import fits


def lookup(index: Tensor, table: Tensor) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    if dispatch.uses_triton(table) and fits(table, len(index), table.shape[1]):
        from ckgconv.ops.lookup import triton

        return triton.lookup(index, table)
    return F.embedding(index, table)


def lookup_onto(index: Tensor, place: Tensor, table: Tensor, rows: int) -> Tensor:
    """[R, D], zero but where something is placed: y_r = Σ_{m: place_m = r} T[a_m]; index and place are int64 [M].

    Three on one place would add up in any order, so a run that asks for repeatable sums has torch's.
    """
    repeatable = torch.are_deterministic_algorithms_enabled()
    if dispatch.uses_triton(table) and fits(table, rows, table.shape[1]) and not repeatable:
        from ckgconv.ops.lookup import triton

        return triton.lookup_onto(index, place, table, rows)
    return table.new_zeros(rows, table.shape[1]).index_add(0, place, lookup(index, table))


__all__ = ["lookup", "lookup_onto"]
