"""y = x Wᵀ + b; on a GPU the gradient of b for few rows is one short launch, `triton`.

Torch's sum over 700 rows takes 9 µs, three times the products around it, and a network of ten blocks has sixty of them.

Legend: R rows, K channels in, D channels out.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops import dispatch
from ckgconv.ops.dispatch import fits

FEW_ROWS = 2**12


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """[R, D] from x [R, K], W [D, K] and b [D] or None; any number of dimensions of x."""
    if bias is None or x.dim() != 2 or x.shape[0] > FEW_ROWS or x.dtype != torch.float32:
        return F.linear(x, weight, bias)
    if torch.is_autocast_enabled(x.device.type) or not dispatch.uses_triton(x) or not fits(x, *x.shape):
        return F.linear(x, weight, bias)
    from ckgconv.ops.linear import triton

    return triton.Linear.apply(x, weight, bias)


__all__ = ["linear"]
