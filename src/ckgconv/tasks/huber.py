"""Huber loss: quadratic in small errors, linear in large ones, so that the gradient of an outlier is bounded.

    huber_δ(r) = ½ r²  where |r| ≤ δ,  δ (|r| - ½ δ)  elsewhere;   the mean over known targets of r = ŷ - y

δ is `training.huber_delta`, in the units the network is trained in: standard deviations where targets are scaled.

Legend: M rows (graphs or nodes), T outputs.
"""

from torch import Tensor
from torch.nn import functional as F

from ckgconv.tasks.task import Loss, Total, one_process, weighted


def huber(
    prediction: Tensor,
    target: Tensor,
    total: Total = one_process,
    weight: Tensor | None = None,
    huber_delta: float = 1.0,
) -> Tensor:
    """[M, T] and [M, T] or [M] → scalar; targets of NaN do not count, nor do their predictions."""
    target = target.reshape(prediction.shape).to(prediction.dtype)
    known = target.isfinite()
    prediction, target = prediction.where(known, 0.0), target.where(known, 0.0)
    terms = F.huber_loss(prediction, target, reduction="none", delta=huber_delta)
    return weighted(terms, weight).sum() / total(known.sum()).clamp(min=1)


HUBER = Loss(huber, targets="values", options=("huber_delta",), weighted=True)
