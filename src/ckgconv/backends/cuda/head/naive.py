"""A pyramid of linear layers, GELU between, as the equation reads.

y = W₃ GELU(W₂ GELU(W₁ x + b₁) + b₂) + b₃        and alike with other numbers of layers
"""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F


def pyramid(x: Tensor, fields: Sequence[Tensor]) -> Tensor:
    """[M, D] and W₁, b₁, W₂, b₂, … → [M, T]."""
    layers = list(zip(fields[::2], fields[1::2], strict=True))
    for weight, bias in layers[:-1]:
        x = F.gelu(F.linear(x, weight, bias))
    return F.linear(x, *layers[-1])
