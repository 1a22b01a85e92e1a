"""Mean absolute difference over targets that are known, as the equation reads.

Σ_known |ŷ - y| / max(1, number known)        y is known where it is finite
"""

from torch import Tensor


def known_difference(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Σ |ŷ - y| and the number of known y, from two tensors of one shape."""
    known = target.isfinite()
    return (prediction - target).where(known, 0.0).abs().sum(), known.sum()


def mean_absolute_error(prediction: Tensor, target: Tensor) -> Tensor:
    """Scalar from two tensors of one shape."""
    total, count = known_difference(prediction, target)
    return total / count.clamp(min=1)
