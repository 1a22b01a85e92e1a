"""Coefficient of determination: which share of the targets' variance the predictions explain.

    R² = 1 - Σ (y - ŷ)² / Σ (y - ȳ)²   of each output over its known targets; the mean over the outputs

R² is one where every prediction is exact, zero for the mean of the targets, and negative for worse predictions. It is
undefined for fewer than two known targets, or for targets that are all equal: such outputs are left out, and R² is NaN
where none remains.

Legend: M rows (graphs or nodes), T outputs.
"""

import torch
import torchmetrics
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from ckgconv.tasks.task import Metric


class R2(torchmetrics.Metric):
    """Keeps all rows: Σ y² - (Σ y)²/M would lose its digits where the mean is large."""

    full_state_update = False
    prediction: list[Tensor]
    target: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.add_state("prediction", [], dist_reduce_fx="cat")
        self.add_state("target", [], dist_reduce_fx="cat")

    def update(self, prediction: Tensor, target: Tensor) -> None:
        """[M, T] both; targets of NaN do not count."""
        self.prediction.append(prediction.double())
        self.target.append(target.double())

    def compute(self) -> Tensor:
        prediction, target = dim_zero_cat(self.prediction), dim_zero_cat(self.target)
        known = target.isfinite()
        count = known.sum(0)
        mean = target.where(known, 0.0).sum(0) / count
        residual = (target - prediction).where(known, 0.0).square().sum(0)
        spread = (target - mean).where(known, 0.0).square().sum(0)
        defined = (count > 1) & (spread > 0)
        return (1 - residual / spread)[defined].mean() if bool(defined.any()) else torch.full((), torch.nan)


def feed(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Add whole rows, since each output has a variance of its own."""
    metric.update(prediction, target.reshape(prediction.shape))


R2_SCORE = Metric(lambda outputs: R2(), targets="values", higher_is_better=True, feed=feed)
