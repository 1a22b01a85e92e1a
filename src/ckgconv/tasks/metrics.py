"""Metrics, as the benchmarks define them, through torchmetrics.

    mae                 mean |ŷ - y| over known targets
    accuracy            share of rows whose class is predicted correctly
    sbm_accuracy        mean of the recalls of the classes, not plain accuracy
    average_precision   unweighted mean over the labels (`ranking`)
    auroc               unweighted mean over the labels (`ranking`)
    rmse                √ mean (ŷ - y)² over known targets
    mse                 mean (ŷ - y)² over known targets
    trimmed_mae         mean |ŷ - y| without the largest percent of the errors
    r2                  share of the variance explained, mean over the outputs
    f1, mcc, label_f1 … of decisions (`decided`)
    mixed_score         of targets of different kinds (`mixed`)

A metric that the known targets do not define is NaN, never a number that looks like a score.

Legend: M rows, T outputs.
"""

import math
import warnings

import torch
from torch import Tensor
from torchmetrics import MeanAbsoluteError
from torchmetrics import Metric as Collector
from torchmetrics.classification import MulticlassAccuracy, MulticlassRecall

from ckgconv.registry import Registry
from ckgconv.tasks.decided import DECIDED
from ckgconv.tasks.mixed import MIXED_SCORE
from ckgconv.tasks.mse import MSE
from ckgconv.tasks.r2 import R2_SCORE
from ckgconv.tasks.ranking import AUROC, AVERAGE_PRECISION
from ckgconv.tasks.rmse import RMSE
from ckgconv.tasks.task import IGNORED, Metric
from ckgconv.tasks.trimmed import TRIMMED_MAE


class Score:
    """A metric over batches of predictions [M, T] as the network returns them, and targets as the data has them.

    Targets of NaN, and classes or labels of -1, do not count.
    """

    def __init__(self, metric: Metric | str, outputs: int, device: torch.device) -> None:
        self.metric = _named(metric)
        # In float64, so that sums do not depend on the order of the batches.
        self.collector = self.metric.make(outputs).set_dtype(torch.float64).to(device)

    def update(self, prediction: Tensor, target: Tensor) -> None:
        self.metric.update(self.collector, prediction, target)

    def compute(self) -> float:
        """The value over all batches; NaN where the targets do not define it, such as AUROC with a single class."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return float(self.collector.compute())
            except (IndexError, ValueError):
                return math.nan


def better(metric: Metric | str, one: float, other: float | None) -> bool:
    """Whether the value `one` of a metric improves on `other`; NaN improves on nothing, and any number on NaN."""
    if other is None:
        return True
    if math.isnan(one) or math.isnan(other):
        return not math.isnan(one)
    return one > other if _named(metric).higher_is_better else one < other


def _named(metric: Metric | str) -> Metric:
    return METRICS[metric] if isinstance(metric, str) else metric


class Accuracy(MulticlassAccuracy):
    """NaN where no row counts; torchmetrics says 0."""

    def compute(self) -> Tensor:
        return _defined(self, super().compute())


class Recall(MulticlassRecall):
    """NaN where no row counts; torchmetrics says 0."""

    def compute(self) -> Tensor:
        return _defined(self, super().compute())


def _defined(metric: Accuracy | Recall, value: Tensor) -> Tensor:
    assert isinstance(metric.tp, Tensor)
    assert isinstance(metric.fn, Tensor)
    return value if bool((metric.tp + metric.fn > 0).any()) else torch.full_like(value, torch.nan)


def _accuracy(outputs: int) -> Collector:
    return Accuracy(max(outputs, 2), average="micro", ignore_index=IGNORED)


def _mean_recall(outputs: int) -> Collector:
    return Recall(max(outputs, 2), average="macro", ignore_index=IGNORED)


OURS = {
    "mae": Metric(lambda outputs: MeanAbsoluteError(), "values", higher_is_better=False),
    "accuracy": Metric(_accuracy, "classes", higher_is_better=True),
    "sbm_accuracy": Metric(_mean_recall, "classes", higher_is_better=True),
    "average_precision": AVERAGE_PRECISION,
    "auroc": AUROC,
    "rmse": RMSE,
    "mse": MSE,
    "r2": R2_SCORE,
    "trimmed_mae": TRIMMED_MAE,
    **DECIDED,
    "mixed_score": MIXED_SCORE,
}
METRICS: Registry[Metric] = Registry("metric", "ckgconv.metrics", OURS, Metric)
