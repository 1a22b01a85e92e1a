"""The pyramid head: three layers on few rows as one launch on a GPU, layer after layer elsewhere."""

from collections.abc import Sequence

from torch import Tensor

from ckgconv.ops.fused import fused
from ckgconv.ops.pyramid import naive


def pyramid(x: Tensor, fields: Sequence[Tensor]) -> Tensor:
    """[M, D] and W₁, b₁, W₂, b₂, … → [M, T]."""
    if fused(x):
        from ckgconv.ops.pyramid import triton as kernels

        if kernels.applies(x, fields):
            return kernels.pyramid(x, fields)
    return naive.pyramid(x, fields)
