"""Metrics of rankings, the mean over the labels that define them.

    average_precision   of a label: defined where one of its known targets is positive
    auroc               of a label: defined where its known targets are of both classes

A label that its targets do not define is left out of the mean, and the mean of none is NaN: torchmetrics counts such a
label as 0, which would be a score.

Legend: M rows (graphs or nodes), T labels.
"""

from collections.abc import Callable

import torch
import torchmetrics
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc, binary_average_precision
from torchmetrics.utilities import dim_zero_cat

from ckgconv.tasks.task import IGNORED, Metric

Ranking = Callable[[Tensor, Tensor], Tensor]


class MeanOverLabels(torchmetrics.Metric):
    """Keeps all rows; the metric of a label depends on the order of all of them."""

    full_state_update = False
    probability: list[Tensor]
    label: list[Tensor]

    def __init__(self, of_label: Ranking, needs_negatives: bool, needs_positives: bool = True) -> None:
        super().__init__()
        self.of_label = of_label
        self.needs_negatives = needs_negatives
        self.needs_positives = needs_positives
        self.add_state("probability", [], dist_reduce_fx="cat")
        self.add_state("label", [], dist_reduce_fx="cat")

    def update(self, probability: Tensor, label: Tensor) -> None:
        """[M, T] both; labels of -1 do not count."""
        self.probability.append(probability)
        self.label.append(label)

    def compute(self) -> Tensor:
        if len(self.label) == 0:  # a list, or one tensor of all processes
            return torch.full((), torch.nan)
        found = []
        for probability, label in zip(dim_zero_cat(self.probability).T, dim_zero_cat(self.label).T, strict=True):
            known = label != IGNORED
            positive = label[known] > 0
            lacks_positives = self.needs_positives and not bool(positive.any())
            lacks_negatives = self.needs_negatives and bool(positive.all())
            if len(positive) and not lacks_positives and not lacks_negatives:
                found.append(self.of_label(probability[known], label[known]))
        return torch.stack(found).double().mean() if found else torch.full((), torch.nan)


def feed(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Add probabilities, since torchmetrics takes values outside 0 … 1 for logits."""
    labels = target.reshape(prediction.shape).nan_to_num(IGNORED).long()
    metric.update(prediction.sigmoid(), labels)


AVERAGE_PRECISION = Metric(
    lambda outputs: MeanOverLabels(binary_average_precision, needs_negatives=False),
    targets="labels",
    higher_is_better=True,
    feed=feed,
)
AUROC = Metric(
    lambda outputs: MeanOverLabels(binary_auroc, needs_negatives=True),
    targets="labels",
    higher_is_better=True,
    feed=feed,
)
