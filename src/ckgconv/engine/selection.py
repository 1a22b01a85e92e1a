"""Which epoch a run keeps, by `training.select`.

    metric             the best validation metric, the first of equal ones
    loss               the least validation loss
    metric_then_loss   the best validation metric, of equal ones the least validation loss

Where `training.smooth_validation` is w > 1, means over the last w epochs take the place of both. A metric such as
accuracy takes few values on few rows, so that many epochs tie; the loss tells them apart. The loss is that of all rows
of the validation split at once, in the units that the network is trained in.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from ckgconv.engine.record import Best, Epoch
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.metrics import better
from ckgconv.tasks.task import Metric


def reads_loss(training: TrainingRecipe) -> bool:
    """Whether epochs are compared by their validation loss."""
    return training.select != "metric"


def candidate(epochs: Sequence[Epoch], training: TrainingRecipe) -> Best:
    """The newest epoch as the best one, with the means that it is judged by."""
    width, newest = training.smooth_validation, epochs[-1]
    window = epochs[-width:]
    losses = [epoch.val_loss for epoch in window if epoch.val_loss is not None]
    return Best(
        newest.epoch,
        newest.val,
        smoothed=None if width == 1 else fmean(epoch.val for epoch in window),
        loss=fmean(losses) if reads_loss(training) and losses else None,
    )


def improves(found: Best, best: Best | None, training: TrainingRecipe, metric: Metric) -> bool:
    """Whether a run keeps the epoch `found` in place of the `best` one so far."""
    if best is None:
        return True
    if training.select == "loss":
        return _less(found.loss, best.loss)
    if better(metric, found.score, best.score):
        return True
    ties = training.select == "metric_then_loss" and found.score == best.score
    return ties and _less(found.loss, best.loss)


def _less(one: float | None, other: float | None) -> bool:
    """Whether a loss is below another; NaN is below nothing, and any number below NaN."""
    known, before = (math.nan if loss is None else loss for loss in (one, other))
    return known < before or (math.isnan(before) and not math.isnan(known))
