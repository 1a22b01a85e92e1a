"""Rows of a learned table, y_m = T[a_m]: torch's embedding on a CPU, `triton` on a GPU."""

from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.fused import fused


def lookup(index: Tensor, table: Tensor) -> Tensor:
    """[M, D] from int64 [M] and a table [V, D]."""
    if fused(table):
        from ckgconv.ops.lookup import triton

        return triton.lookup(index, table)
    return F.embedding(index, table)


__all__ = ["lookup"]
