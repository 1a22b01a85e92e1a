"""The benchmark's exact metric, through torchmetrics.

    mae                 mean |ŷ - y| over known targets
    accuracy            share of right classes
    sbm_accuracy        mean over the classes of the share of their nodes found, not plain accuracy
    average_precision   unweighted mean over the labels
    auroc               unweighted mean over the labels

Legend: M rows, T outputs.
"""

import math
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torchmetrics import MeanAbsoluteError, Metric
from torchmetrics.classification import (
    BinaryAUROC,
    BinaryAveragePrecision,
    MulticlassAccuracy,
    MulticlassRecall,
    MultilabelAUROC,
    MultilabelAveragePrecision,
)

from ckgconv.tasks.losses import IGNORED

HIGHER_IS_BETTER = {
    "mae": False,
    "accuracy": True,
    "sbm_accuracy": True,
    "average_precision": True,
    "auroc": True,
}


class Score:
    """A metric that takes predictions as the network gives them: [M, T], and targets as the data has them.

    Targets of NaN, and classes or labels of -1, do not count.
    """

    def __init__(self, name: str, outputs: int, device: torch.device) -> None:
        self.name = name
        # Sums in float64: the order of batches must not show.
        self.metric: Metric = METRICS[name](outputs).set_dtype(torch.float64).to(device)

    def update(self, prediction: Tensor, target: Tensor) -> None:
        if self.name == "mae":
            target = target.reshape(prediction.shape)
            known = target.isfinite()
            self.metric.update(prediction[known], target[known])
        elif self.name in ("accuracy", "sbm_accuracy"):
            self.metric.update(classes_of(prediction), target)
        else:
            labels = target.reshape(prediction.shape).nan_to_num(IGNORED).long()
            # Probabilities: of logits the library decides batch by batch whether they are some already.
            shares = prediction.sigmoid()
            single = prediction.shape[1] == 1
            self.metric.update(*((values.squeeze(-1) if single else values) for values in (shares, labels)))

    def compute(self) -> float:
        """The value over everything seen; NaN where the labels do not define it, as with one class alone."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return float(self.metric.compute())
            except (IndexError, ValueError):
                return math.nan


def better(name: str, one: float, other: float | None) -> bool:
    """Whether the metric value `one` improves on `other`."""
    if other is None or other != other:
        return True
    return one > other if HIGHER_IS_BETTER[name] else one < other


def classes_of(prediction: Tensor) -> Tensor:
    """The predicted class: the largest logit, or the sign of a single one."""
    return (prediction.squeeze(-1) > 0).long() if prediction.shape[1] == 1 else prediction.argmax(-1)


METRICS: dict[str, Callable[[int], Metric]] = {
    "mae": lambda outputs: MeanAbsoluteError(),
    "accuracy": lambda outputs: MulticlassAccuracy(max(outputs, 2), average="micro", ignore_index=IGNORED),
    "sbm_accuracy": lambda outputs: MulticlassRecall(max(outputs, 2), average="macro", ignore_index=IGNORED),
    "average_precision": lambda outputs: (
        BinaryAveragePrecision(ignore_index=IGNORED)
        if outputs == 1
        else MultilabelAveragePrecision(outputs, average="macro", ignore_index=IGNORED)
    ),
    "auroc": lambda outputs: (
        BinaryAUROC(ignore_index=IGNORED)
        if outputs == 1
        else MultilabelAUROC(outputs, average="macro", ignore_index=IGNORED)
    ),
}
