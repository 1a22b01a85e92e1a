"""Weighted batch normalisation that moves running statistics, by plain torch or, for few rows on a GPU, by `triton`.

    μ̄ ← μ̄ + m (μ - μ̄)        σ̄² ← σ̄² + m (σ² W/(W - 1) - σ̄²)        where any row counts

Legend: R rows, D channels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.batch_norm.analytic import weighted_batch_norm
from ckgconv.ops.derivatives import assign
from ckgconv.ops.dispatch import fits

FEW_ROWS = 2**13  # up to here one program reads all rows of its channels faster than torch launches its kernels


class Running(NamedTuple):
    """Statistics of a norm that follow those of batches."""

    mean: Tensor  # [D]
    variance: Tensor  # [D]
    momentum: float  # m


def tracking_batch_norm(
    x: Tensor, row_weight: Tensor | None, affine: tuple[Tensor, Tensor], running: Running, epsilon: float
) -> Tensor:
    """y [R, D] of x [R, D] with γ and β [D]; running mean and variance [D] move towards those of the batch."""
    few = x.shape[0] <= FEW_ROWS and not several_processes()
    # `fits` comes last: torch.compile cannot trace the precision that it asks for.
    if few and x.dtype == torch.float32 and dispatch.uses_triton(x) and fits(x, *x.shape):
        from ckgconv.ops.batch_norm import triton

        return triton.TrackingBatchNorm.apply(x, row_weight, *affine, *running, epsilon)
    y, mean, variance, total = weighted_batch_norm(x, row_weight, *affine, epsilon)
    track(running, mean, variance, total)
    return y


@torch.no_grad()
def track(running: Running, mean: Tensor, variance: Tensor, total: Tensor) -> None:
    """Running statistics move towards those of the batch, the variance by its unbiased estimate."""
    # In the dtype of the statistics: a product with booleans has torch's default dtype, and 0.1 its digits.
    share = running.momentum * (total > 0).to(mean.dtype)
    unbiased = variance * (total / (total - 1).clamp(min=1))
    for kept, found in ((running.mean, mean), (running.variance, unbiased)):
        assign(kept, torch.lerp(kept, found, share))
