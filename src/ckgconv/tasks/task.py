"""Interface of losses and metrics, and the meaning of a network's outputs.

targets   a prediction [M, T] is           a target is                 users see
values    the value itself                 a number; NaN: unknown      the value
classes   logits, or the logit of class 1  a class; -1: unknown        probabilities, and the most probable class
labels    a logit of each label            0 or 1; -1, NaN: unknown    probabilities
mixed     columns of all these (`mixed`)   one column for each output  values and probabilities

A metric can judge a network where its targets are of the same kind as those of the loss.

Legend: M rows (graphs or nodes), T outputs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torchmetrics
from torch import Tensor

from ckgconv.recipe import TrainingRecipe

Targets = Literal["values", "classes", "labels", "mixed"]
# A sum over the processes that share a batch.
Total = Callable[[Tensor], Tensor]
BoundLoss = Callable[..., Tensor]  # (prediction, target, total, weight or None)

# The class or label of a row that does not count; a value that does not count is NaN.
IGNORED = -1


def one_process(value: Tensor) -> Tensor:
    """The total over one process."""
    return value


def weighted(terms: Tensor, weight: Tensor | None) -> Tensor:
    """Terms [M] or [M, T] times weights [M] or [M, T]."""
    if weight is None:
        return terms
    return terms * (weight.unsqueeze(-1) if weight.dim() < terms.dim() else weight).to(terms.dtype)


@dataclass(frozen=True)
class Loss:
    """What training minimises.

    Args:
        function: (prediction [M, T], target, total, options …) → this process's share of the loss, a scalar. Rows that
            do not count change nothing.
        targets: the kind of targets.
        options: fields of the training recipe that the function takes by name.
        static: whether shapes never depend on how many rows count, and nothing is read back to the host, so that a
            step can be captured.
        weighted: whether the function takes weights of the targets, [M] or [M, T], as `weight`: each term of the mean
            is multiplied by its own (`weights`).
    """

    function: Callable[..., Tensor]
    targets: Targets
    options: tuple[str, ...] = ()
    static: bool = True
    weighted: bool = False

    def __call__(self, prediction: Tensor, target: Tensor, total: Total = one_process, **options: Any) -> Tensor:
        return self.function(prediction, target, total, **options)

    def of(self, recipe: TrainingRecipe) -> BoundLoss:
        """The loss with the recipe's options."""
        options = {name: getattr(recipe, name) for name in self.options}

        def bound(prediction: Tensor, target: Tensor, total: Total, weight: Tensor | None = None) -> Tensor:
            own = options if weight is None else {**options, "weight": weight}
            return self.function(prediction, target, total, **own)

        return bound

    def fitted(self, recipe: TrainingRecipe) -> "Loss":
        """The loss for the columns of a recipe; only that of several kinds differs."""
        return self

    def outcome(self, prediction: Tensor) -> tuple[Tensor, Tensor | None]:
        """What users see of a prediction: values or probabilities, and of classes also the most probable one."""
        if self.targets == "values":
            return prediction, None
        if self.targets == "labels":
            return prediction.sigmoid(), None
        probabilities = prediction.sigmoid() if prediction.shape[1] == 1 else prediction.softmax(-1)
        return probabilities, classes_of(prediction)

    def prediction_of(self, outcome: Tensor) -> Tensor:
        """The prediction [M, T] with these values or probabilities [M, T] as its outcome, as metrics expect it."""
        if self.targets == "values":
            return outcome
        # A probability of 0 or 1 has no finite logit.
        limits = torch.finfo(outcome.dtype)
        inside = outcome.clamp(limits.tiny, 1 - limits.eps)
        return inside.log() if self.targets == "classes" and outcome.shape[1] > 1 else inside.logit()


Feed = Callable[[torchmetrics.Metric, Tensor, Tensor], None]


@dataclass(frozen=True)
class Metric:
    """What judges a network.

    Args:
        make: number of outputs T → the torchmetrics object that collects batches.
        targets: the kind of targets.
        higher_is_better: its direction.
        feed: adds a batch without the rows that do not count to a torchmetrics object: (metric, prediction [M, T] as
            the network returns it, target as the data has it); by default that of `FEEDS` for these targets.
    """

    make: Callable[[int], torchmetrics.Metric]
    targets: Targets
    higher_is_better: bool
    feed: Feed | None = None

    def update(self, metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
        """Add a batch."""
        (self.feed or FEEDS[self.targets])(metric, prediction, target)


@dataclass(frozen=True)
class Task:
    """What a run minimises, and what judges it."""

    loss: Loss
    metric: Metric
    metric_name: str
    others: Mapping[str, Metric] = field(default_factory=dict)  # reported next to the metric, by name


def classes_of(prediction: Tensor) -> Tensor:
    """The predicted class: the largest logit, or the sign of a single one."""
    return (prediction.squeeze(-1) > 0).long() if prediction.shape[1] == 1 else prediction.argmax(-1)


def feed_values(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Add the known values of all outputs as one vector."""
    target = target.reshape(prediction.shape)
    known = target.isfinite()
    metric.update(prediction[known], target[known])


def feed_classes(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Add predicted classes; the metric itself ignores class -1."""
    metric.update(classes_of(prediction), target)


def feed_labels(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Add probabilities, since torchmetrics guesses for every batch separately whether it received logits."""
    labels = target.reshape(prediction.shape).nan_to_num(IGNORED).long()
    probabilities = prediction.sigmoid()
    single = prediction.shape[1] == 1
    metric.update(*((values.squeeze(-1) if single else values) for values in (probabilities, labels)))


def feed_mixed(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Add whole rows."""
    metric.update(prediction, target.reshape(prediction.shape))


FEEDS: dict[Targets, Feed] = {
    "values": feed_values,
    "classes": feed_classes,
    "labels": feed_labels,
    "mixed": feed_mixed,
}
