"""The mean absolute difference of a batch and its gradient in one launch, where torch needs 18.

Legend: M values.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.launch import power_of_two

LIMIT = 4096  # values: one program reads them all


def applies(prediction: Tensor, target: Tensor) -> bool:
    """Float32 values, few enough for one program."""
    return (
        dispatch.uses_triton(prediction)
        and prediction.dtype == target.dtype == torch.float32
        and 0 < target.numel() <= LIMIT
    )


def mean_absolute_error(prediction: Tensor, target: Tensor) -> Tensor:
    """Scalar from two tensors of one shape; see `naive`."""
    return MeanAbsoluteError.apply(prediction, target)


class MeanAbsoluteError(torch.autograd.Function):
    """Predictions, targets → the mean absolute difference."""

    @staticmethod
    def forward(ctx: Any, prediction: Tensor, target: Tensor) -> Tensor:
        gradient = torch.empty_like(prediction, memory_format=torch.contiguous_format)
        mean = prediction.new_empty(())
        size = prediction.numel()
        mean_absolute[(1,)](prediction.contiguous(), target.contiguous(), mean, gradient, size, power_of_two(size))
        ctx.save_for_backward(gradient)
        return mean

    @staticmethod
    def backward(ctx: Any, pulled: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * pulled, None  # linear in what is pulled back: right for higher derivatives too


@triton.jit
def mean_absolute(prediction, target, mean, gradient, size, BLOCK: tl.constexpr):
    """mean and ∂mean/∂ŷ; a comparison with NaN is false."""
    place = tl.arange(0, BLOCK)
    y = tl.load(target + place, mask=place < size, other=float("nan"))
    known = tl.abs(y) < float("inf")
    difference = tl.load(prediction + place, mask=place < size, other=0.0) - tl.where(known, y, 0.0)
    share = 1.0 / tl.maximum(tl.sum(known.to(tl.float32), axis=0), 1.0)
    tl.store(mean, tl.sum(tl.where(known, tl.abs(difference), 0.0), axis=0) * share)
    sign = tl.where(difference > 0, share, tl.where(difference < 0, -share, difference))
    tl.store(gradient + place, tl.where(known, sign, 0.0), mask=place < size)
