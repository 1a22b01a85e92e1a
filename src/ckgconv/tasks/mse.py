"""Mean square error, as a loss and as a metric: mean (ŷ - y)² over known targets; large errors weigh most.

Legend: M rows (graphs or nodes), T outputs.
"""

from torch import Tensor
from torchmetrics import MeanSquaredError

from ckgconv.tasks.task import Loss, Metric, Total, one_process, weighted


def mse(prediction: Tensor, target: Tensor, total: Total = one_process, weight: Tensor | None = None) -> Tensor:
    """[M, T] and [M, T] or [M] → scalar; targets of NaN do not count, nor do their predictions."""
    target = target.reshape(prediction.shape).to(prediction.dtype)
    known = target.isfinite()
    terms = (prediction.where(known, 0.0) - target.where(known, 0.0)).square()
    return weighted(terms, weight).sum() / total(known.sum()).clamp(min=1)


MSE_LOSS = Loss(mse, targets="values", weighted=True)
MSE = Metric(lambda outputs: MeanSquaredError(), targets="values", higher_is_better=False)
