"""Scaled depthwise convolution over a support; `naive` is the specification of `segments`."""

import torch
from torch import Tensor

from ckgconv.ops.convolution import naive, segments
from ckgconv.ops.convolution.naive import sparse_global_convolution


def scaled_convolution(
    x: Tensor, psi: Tensor, receiver: Tensor, sender: Tensor, support_size: Tensor, rowptr: Tensor | None = None
) -> Tensor:
    """y [N, D] as `naive`; where `rowptr` [N + 1] is given, rows are sorted by receiver and a CPU sums them in turn."""
    by_rows = rowptr is not None and x.device.type == "cpu" and x.dtype == psi.dtype in (torch.float32, torch.float64)
    if not by_rows or torch.compiler.is_compiling():
        return naive.scaled_convolution(x, psi, receiver, sender, support_size)
    assert rowptr is not None
    return segments.scaled_convolution(x, psi, receiver, sender, support_size, rowptr)


__all__ = ["scaled_convolution", "sparse_global_convolution"]
