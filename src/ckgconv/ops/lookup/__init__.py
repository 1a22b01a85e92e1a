"""Rows of a learned table, y_m = T[a_m]: `triton` on a GPU where it fits, torch's embedding elsewhere."""

from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.fused import fits, fused


def lookup(index: Tensor, table: Tensor) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    if fused(table) and fits(table, len(index), table.shape[1]):
        from ckgconv.ops.lookup import triton

        return triton.lookup(index, table)
    return F.embedding(index, table)


__all__ = ["lookup"]
