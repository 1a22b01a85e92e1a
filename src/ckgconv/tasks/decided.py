"""Metrics of decisions: labels and classes after the probability was compared with ½, or the most probable was taken.

of labels      the mean over the labels that define it
    label_accuracy, label_precision, label_recall, label_f1, label_mcc, label_balanced_accuracy
of classes
    f1, mcc, class_auroc      means over classes (mcc: over all rows), as torchmetrics defines them

F1, precision and recall need a positive target, Matthews' coefficient and the balanced accuracy both classes: otherwise
they are NaN.

Legend: M rows (graphs or nodes), T labels or classes.
"""

import torch
import torchmetrics
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_accuracy,
    binary_f1_score,
    binary_matthews_corrcoef,
    binary_precision,
    binary_recall,
    binary_specificity,
    multiclass_auroc,
    multiclass_f1_score,
    multiclass_matthews_corrcoef,
)
from torchmetrics.utilities import dim_zero_cat

from ckgconv.tasks.ranking import MeanOverLabels, Ranking, feed
from ckgconv.tasks.task import Metric


def _balanced(probability: Tensor, label: Tensor) -> Tensor:
    return (binary_recall(probability, label) + binary_specificity(probability, label)) / 2


def _of_labels(of_label: Ranking, positives: bool, negatives: bool) -> Metric:
    return Metric(
        lambda outputs: MeanOverLabels(of_label, needs_negatives=negatives, needs_positives=positives),
        targets="labels",
        higher_is_better=True,
        feed=feed,
    )


class OfClasses(torchmetrics.Metric):
    """Keeps the rows of known classes; NaN where fewer than two classes occur."""

    full_state_update = False
    probability: list[Tensor]
    known: list[Tensor]

    def __init__(self, name: str, classes: int) -> None:
        super().__init__()
        self.name, self.classes = name, max(classes, 2)
        self.add_state("probability", [], dist_reduce_fx="cat")
        self.add_state("known", [], dist_reduce_fx="cat")

    def update(self, probability: Tensor, target: Tensor) -> None:
        """[M, T] and [M]."""
        self.probability.append(probability)
        self.known.append(target)

    def compute(self) -> Tensor:
        if len(self.known) == 0:  # a list, or one tensor of all processes
            return torch.full((), torch.nan)
        target, probability = dim_zero_cat(self.known), dim_zero_cat(self.probability)
        counts = target >= 0
        target, probability = target[counts].long(), probability[counts]
        present = target.unique()
        if len(present) < 2:
            return torch.full((), torch.nan)
        if self.name == "auroc":
            each = multiclass_auroc(probability, target, self.classes, average=None)
            assert isinstance(each, Tensor)
            return each[present].mean()
        if self.name == "f1":
            return multiclass_f1_score(probability, target, self.classes, average=None)[present].mean()
        return multiclass_matthews_corrcoef(probability, target, self.classes)


def feed_classes(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Add probabilities of all classes; a single output is the logit of class 1."""
    if prediction.shape[1] == 1:
        one = prediction.sigmoid()
        metric.update(torch.cat([1 - one, one], dim=1), target)
    else:
        metric.update(prediction.softmax(-1), target)


def _of_classes(name: str) -> Metric:
    return Metric(lambda outputs: OfClasses(name, outputs), "classes", higher_is_better=True, feed=feed_classes)


DECIDED = {
    "label_accuracy": _of_labels(binary_accuracy, positives=False, negatives=False),
    "label_precision": _of_labels(binary_precision, positives=True, negatives=False),
    "label_recall": _of_labels(binary_recall, positives=True, negatives=False),
    "label_f1": _of_labels(binary_f1_score, positives=True, negatives=False),
    "label_mcc": _of_labels(binary_matthews_corrcoef, positives=True, negatives=True),
    "label_balanced_accuracy": _of_labels(_balanced, positives=True, negatives=True),
    "f1": _of_classes("f1"),
    "mcc": _of_classes("mcc"),
    "class_auroc": _of_classes("auroc"),
}
