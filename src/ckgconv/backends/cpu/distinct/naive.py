"""The distinct rows of a matrix, as torch sorts them."""

import torch
from torch import Tensor


def distinct_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [R, D] → the distinct rows [U, D] in any order, and the index [R] of every row among them."""
    rows, place = torch.unique(x, dim=0, return_inverse=True)
    return rows, place
