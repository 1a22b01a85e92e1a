"""What a loss and a metric are to the rest of the package, and what a network's outputs mean.

targets   a prediction [M, T] is         a target is                 what a person reads
values    the value itself               a number; NaN: unknown      the value
classes   logits, or one of class 1      a class; -1: unknown        probabilities, and the likeliest class
labels    a logit of each label          0 or 1; -1, NaN: unknown    probabilities

A metric may judge what a loss trains where both have targets of one kind.

Legend: M rows (graphs or nodes), T outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torchmetrics
from torch import Tensor

from ckgconv.recipe import TrainingRecipe

Targets = Literal["values", "classes", "labels"]
# Sums over the processes that share a batch.
Total = Callable[[Tensor], Tensor]
BoundLoss = Callable[[Tensor, Tensor, Total], Tensor]

# The class or label of a row that does not count; a value that does not count is NaN.
IGNORED = -1


def one_process(value: Tensor) -> Tensor:
    """The total over one process."""
    return value


@dataclass(frozen=True)
class Loss:
    """What training makes small.

    Args:
        function: (prediction [M, T], target, total, options …) → this process's share of the loss, a scalar. Rows that
            do not count change nothing, shapes never depend on how many do, and nothing is read back to the host.
        targets: what it is trained on.
        options: fields of the training recipe that the function takes by name.
    """

    function: Callable[..., Tensor]
    targets: Targets
    options: tuple[str, ...] = ()

    def __call__(self, prediction: Tensor, target: Tensor, total: Total = one_process, **options: float) -> Tensor:
        return self.function(prediction, target, total, **options)

    def of(self, recipe: TrainingRecipe) -> BoundLoss:
        """The loss with the recipe's options."""
        options = {name: getattr(recipe, name) for name in self.options}
        return lambda prediction, target, total: self.function(prediction, target, total, **options)

    def outcome(self, prediction: Tensor) -> tuple[Tensor, Tensor | None]:
        """What a person reads: values, or probabilities; and the most probable class where there are classes."""
        if self.targets == "values":
            return prediction, None
        if self.targets == "labels":
            return prediction.sigmoid(), None
        probabilities = prediction.sigmoid() if prediction.shape[1] == 1 else prediction.softmax(-1)
        return probabilities, classes_of(prediction)


Feed = Callable[[torchmetrics.Metric, Tensor, Tensor], None]


@dataclass(frozen=True)
class Metric:
    """What says how good a network is.

    Args:
        make: number of outputs T → the torchmetrics object that collects batches.
        targets: what it compares with.
        higher_is_better: its direction.
        feed: hands over a batch (metric, prediction [M, T] as the network gives it, target as the data has it) without
            the rows that do not count; by default as `FEEDS` does for its targets.
    """

    make: Callable[[int], torchmetrics.Metric]
    targets: Targets
    higher_is_better: bool
    feed: Feed | None = None

    def update(self, metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
        """Add a batch."""
        (self.feed or FEEDS[self.targets])(metric, prediction, target)


def classes_of(prediction: Tensor) -> Tensor:
    """The predicted class: the largest logit, or the sign of a single one."""
    return (prediction.squeeze(-1) > 0).long() if prediction.shape[1] == 1 else prediction.argmax(-1)


def feed_values(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Known values of all outputs as one vector."""
    target = target.reshape(prediction.shape)
    known = target.isfinite()
    metric.update(prediction[known], target[known])


def feed_classes(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Predicted classes; the metric itself ignores class -1."""
    metric.update(classes_of(prediction), target)


def feed_labels(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    """Probabilities, since of logits the library decides batch by batch whether they are some already."""
    labels = target.reshape(prediction.shape).nan_to_num(IGNORED).long()
    shares = prediction.sigmoid()
    single = prediction.shape[1] == 1
    metric.update(*((values.squeeze(-1) if single else values) for values in (shares, labels)))


FEEDS: dict[Targets, Feed] = {"values": feed_values, "classes": feed_classes, "labels": feed_labels}
