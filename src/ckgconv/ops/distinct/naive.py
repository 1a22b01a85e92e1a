"""The distinct rows of a matrix, as torch sorts them.

Legend: R rows, U distinct rows, D channels.
"""

import torch
from torch import Tensor


def distinct_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [R, D] → the distinct rows [U, D] in any order, and the number [R] of each row among them."""
    rows, kind = torch.unique(x, dim=0, return_inverse=True)
    return rows, kind


def spread_rows(values: Tensor, kind: Tensor) -> Tensor:
    """[R, D] from [U, D]."""
    return values.index_select(0, kind)
