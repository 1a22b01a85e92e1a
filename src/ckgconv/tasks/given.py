"""Losses and metrics given in Python in place of those that a recipe names.

targets   a function receives              of K known targets out of M rows
values    prediction [K], target [K]       all outputs in one vector
classes   prediction [K, T], target [K]    logits, and the class of each row
labels    prediction [K], target [K]       logits of all labels in one vector

Unknown targets are left out before the function is called. How many are known differs from batch to batch, so a step
with such a loss is never captured. A function that must see whole rows is a `Loss` or a `Metric` of its own.

Legend: M rows (graphs or nodes), T outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torchmetrics
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from ckgconv.checks import InputError, require
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS
from ckgconv.tasks.mixed import MixedLoss, metric_of_columns
from ckgconv.tasks.task import FEEDS, Feed, Loss, Metric, Targets, Task, Total

LossFunction = Callable[[Tensor, Tensor], Tensor]
MetricFunction = Callable[[Tensor, Tensor], Tensor | float]


@dataclass(frozen=True)
class OwnMetric:
    """A metric of your own, and its direction.

    Args:
        of: a torchmetrics object, or a function (prediction, target) → number over all rows of a split.
        higher_is_better: its direction.
    """

    of: torchmetrics.Metric | MetricFunction
    higher_is_better: bool


GivenLoss = Loss | LossFunction
GivenMetric = Metric | OwnMetric | torchmetrics.Metric


def task_of(recipe: TrainingRecipe, loss: GivenLoss | None = None, metric: GivenMetric | None = None) -> Task:
    """Loss and metric of a recipe, or those given in their place for the same kind of targets."""
    named = LOSSES[recipe.loss].fitted(recipe)
    chosen = named if loss is None else _loss(loss, named.targets)
    judge = metric_named(recipe.metric, recipe) if metric is None else _metric(metric, named.targets)
    others = {name: metric_named(name, recipe) for name in recipe.metrics}
    for what, kind in (("loss", chosen.targets), ("metric", judge.targets)):
        require(
            kind == named.targets,
            f"The {what} is one of {kind}, but the targets of the recipe's loss {recipe.loss!r} are {named.targets}: "
            f"choose a recipe whose loss has the same kind of targets.",
        )
    return Task(chosen, judge, recipe.metric if metric is None else _name(metric), others)


def metric_named(name: str, recipe: TrainingRecipe) -> Metric:
    """A metric of METRICS; where the targets are of several kinds, of the columns that it can judge."""
    loss = LOSSES[recipe.loss].fitted(recipe)
    if not isinstance(loss, MixedLoss):
        return METRICS[name]
    score: dict[Targets, Metric] = {
        "values": METRICS["r2"],
        "labels": METRICS["auroc"],
        "classes": METRICS["sbm_accuracy"],
    }
    return metric_of_columns(name, METRICS[name], loss.columns, score)


def scaled_outputs(recipe: TrainingRecipe) -> list[bool] | None:
    """Which outputs are values, to be standardised, where targets are of several kinds; None: all."""
    loss = LOSSES[recipe.loss].fitted(recipe)
    if not isinstance(loss, MixedLoss):
        return None
    return [column.targets == "values" for column in loss.columns for _ in range(column.outputs)]


def known(prediction: Tensor, target: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
    """Predictions and targets without those that are unknown, in the shapes of the table above."""
    if targets == "classes":
        counts = target >= 0
        return prediction[counts], target[counts]
    target = target.reshape(prediction.shape).to(prediction.dtype)
    counts = target.isfinite() if targets == "values" else target >= 0
    return prediction[counts], target[counts]


def _loss(given: GivenLoss, targets: Targets) -> Loss:
    if isinstance(given, Loss):
        return given
    require(callable(given), f"loss is a {type(given).__name__}: give a function (prediction, target) → mean.")

    def share(prediction: Tensor, target: Tensor, total: Total) -> Tensor:
        """The mean over this process's known rows, times their share of all known rows of the batch."""
        rows, wanted = known(prediction, target, targets)
        count = torch.tensor(float(wanted.shape[0]), device=prediction.device)
        weight = count / total(count).clamp(min=1)
        if not wanted.shape[0]:
            return 0.0 * prediction.sum()  # a gradient of zero, which processes wait for
        mean = given(rows, wanted)
        _check_mean(mean)
        return mean * weight

    return Loss(share, targets, static=False)


def _check_mean(mean: object) -> None:
    shape = list(mean.shape) if isinstance(mean, Tensor) else type(mean).__name__
    require(
        isinstance(mean, Tensor) and mean.dim() == 0,
        f"The loss given returned {shape}: return one tensor without dimensions, the mean over the rows.",
    )
    assert isinstance(mean, Tensor)
    require(
        mean.requires_grad or not torch.is_grad_enabled(),
        "The loss given returned a number without a gradient: compute it from the prediction, without detach().",
    )


def _metric(given: GivenMetric, targets: Targets) -> Metric:
    if isinstance(given, Metric):
        return given
    own = given if isinstance(given, OwnMetric) else _directed(given)
    function = own.of
    if isinstance(function, torchmetrics.Metric):
        blank = function.clone()
        blank.reset()
        return Metric(lambda outputs: blank.clone(), targets, own.higher_is_better, feed=_feed_of(targets))
    return Metric(lambda outputs: Rows(function, targets), targets, own.higher_is_better, feed=_feed_rows)


def _feed_of(targets: Targets) -> Feed:
    """How a torchmetrics object given is fed: without unknown classes, which one without `ignore_index` counts."""

    def feed(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
        rows = known(prediction, target, targets) if targets == "classes" else (prediction, target)
        if not len(rows[1]):
            return  # several metrics of torchmetrics cannot read zero rows
        try:
            FEEDS[targets](metric, *rows)
        except (RuntimeError, TypeError, ValueError) as error:
            raise InputError(
                f"The metric given, {_name(metric)}, cannot judge {targets} ({str(error).rstrip('.')}): give one that "
                f"can, with ignore_index=-1 where labels are unknown, or OwnMetric(function, higher_is_better=…)."
            ) from error

    return feed


def _directed(given: torchmetrics.Metric) -> OwnMetric:
    if not isinstance(given, torchmetrics.Metric) or given.higher_is_better is None:
        raise InputError(
            f"metric is {_name(given)}, which has no direction: give OwnMetric(metric, higher_is_better=…)."
        )
    return OwnMetric(given, given.higher_is_better)


def _name(given: object) -> str:
    """How a record calls a metric given in Python."""
    inner = given.of if isinstance(given, OwnMetric) else given
    return getattr(inner, "__name__", type(inner).__name__)


class Rows(torchmetrics.Metric):
    """Keeps the known rows of all batches and processes, and calls a function on them once."""

    full_state_update = False
    prediction: list[Tensor]
    target: list[Tensor]

    def __init__(self, function: MetricFunction, targets: Targets) -> None:
        super().__init__()
        self.function = function
        self.targets = targets
        self.add_state("prediction", [], dist_reduce_fx="cat")
        self.add_state("target", [], dist_reduce_fx="cat")

    def update(self, prediction: Tensor, target: Tensor) -> None:
        rows, wanted = known(prediction.double(), target, self.targets)
        self.prediction.append(rows)
        self.target.append(wanted)

    def compute(self) -> Tensor:
        target = dim_zero_cat(self.target)
        if not len(target):
            return torch.full((), torch.nan)
        return torch.as_tensor(self.function(dim_zero_cat(self.prediction), target))


def _feed_rows(metric: torchmetrics.Metric, prediction: Tensor, target: Tensor) -> None:
    metric.update(prediction, target)
