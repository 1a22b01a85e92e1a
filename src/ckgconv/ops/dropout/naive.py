"""Dropout: each entry is kept with probability 1 - p and scaled by 1/(1 - p)."""

from torch import Tensor
from torch.nn import functional as F


def dropout(x: Tensor, probability: float) -> Tensor:
    """The same shape as x; torch's dropout, one random number per entry."""
    return F.dropout(x, probability)
