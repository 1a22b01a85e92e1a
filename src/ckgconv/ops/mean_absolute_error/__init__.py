"""The mean absolute difference: one launch on a GPU for the few values of a batch."""

from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.mean_absolute_error import naive


def mean_absolute_error(prediction: Tensor, target: Tensor) -> Tensor:
    """Scalar from two tensors of one shape."""
    if dispatch.uses_triton(prediction):
        from ckgconv.ops.mean_absolute_error import triton

        if triton.applies(prediction, target):
            return triton.mean_absolute_error(prediction, target)
    return naive.mean_absolute_error(prediction, target)
