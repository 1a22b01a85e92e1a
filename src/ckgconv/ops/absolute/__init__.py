"""The mean absolute difference: one launch on a GPU for the few values of a batch."""

from torch import Tensor

from ckgconv.ops.absolute import naive
from ckgconv.ops.fused import fused


def absolute(prediction: Tensor, target: Tensor) -> Tensor:
    """Scalar from two tensors of one shape."""
    if fused(prediction):
        from ckgconv.ops.absolute import triton as kernels

        if kernels.applies(prediction, target):
            return kernels.absolute(prediction, target)
    return naive.absolute(prediction, target)
