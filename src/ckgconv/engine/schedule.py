"""The learning rate of every epoch: that of the recipe, or one given in Python.

recipe's optimiser and schedule    warm-up and decay (`learning_rate`)
an optimiser of your own           the same shape, times the rate that each of its groups was made with
a function epoch → rate            that rate
a torch scheduler                  stepped after every epoch, with the validation metric where it asks for one

A resumed run repeats the steps of a torch scheduler, so nothing of it is stored.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from ckgconv.checks import InputError
from ckgconv.engine.learning_rate import learning_rate, set_learning_rate
from ckgconv.recipe import TrainingRecipe

INSTEAD = "return the learning rate of an epoch, or give a torch scheduler as functools.partial(StepLR, step_size=10)."
GivenSchedule = Callable[[int], float] | type[LRScheduler] | partial[LRScheduler]


class Schedule(Protocol):
    """Sets the learning rate of each epoch."""

    def begin(self, epoch: int) -> float:
        """Set the rate of an epoch, and return it."""

    def end(self, val: float) -> None:
        """After an epoch, given its validation metric."""


class RecipeSchedule:
    """Warm-up and decay, the same rate in every group."""

    def __init__(self, optimizer: torch.optim.Optimizer, recipe: TrainingRecipe) -> None:
        self.optimizer = optimizer
        self.recipe = recipe

    def begin(self, epoch: int) -> float:
        rate = learning_rate(epoch, self.recipe)
        set_learning_rate(self.optimizer, rate)
        return rate

    def end(self, val: float) -> None: ...


class ScaledSchedule:
    """Warm-up and decay in proportion to the rate of each group."""

    def __init__(self, optimizer: torch.optim.Optimizer, recipe: TrainingRecipe) -> None:
        self.optimizer = optimizer
        self.recipe = recipe
        self.rates = [float(group["lr"]) for group in optimizer.param_groups]

    def begin(self, epoch: int) -> float:
        factor = learning_rate(epoch, self.recipe) / self.recipe.learning_rate
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = factor * rate
        return factor * self.rates[0]

    def end(self, val: float) -> None: ...


class FunctionSchedule:
    """A function epoch → rate, the same rate in every group."""

    def __init__(self, optimizer: torch.optim.Optimizer, function: Callable[[int], float]) -> None:
        self.optimizer = optimizer
        self.function = function

    def begin(self, epoch: int) -> float:
        try:
            rate = self.function(epoch)
        except Exception as error:  # a function of the optimiser, most of all
            raise InputError(f"schedule failed for epoch {epoch} ({error}): {INSTEAD}") from error
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate >= 0:
            raise InputError(f"schedule returned {rate!r} for epoch {epoch}: {INSTEAD}")
        set_learning_rate(self.optimizer, float(rate))
        return float(rate)

    def end(self, val: float) -> None: ...


class TorchSchedule:
    """A torch scheduler, stepped once per epoch."""

    def __init__(self, optimizer: torch.optim.Optimizer, make: Callable[[torch.optim.Optimizer], LRScheduler]) -> None:
        self.optimizer = optimizer
        self.scheduler = make(optimizer)

    def begin(self, epoch: int) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def end(self, val: float) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a resumed run steps the scheduler before the optimiser
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(val)
            else:
                self.scheduler.step()


def make_schedule(
    optimizer: torch.optim.Optimizer, recipe: TrainingRecipe, given: GivenSchedule | None, own_optimizer: bool
) -> Schedule:
    """The schedule of a run, by the table above."""
    if given is None:
        return ScaledSchedule(optimizer, recipe) if own_optimizer else RecipeSchedule(optimizer, recipe)
    made_by: Any = given.func if isinstance(given, partial) else given
    if isinstance(made_by, type) and issubclass(made_by, LRScheduler):
        return TorchSchedule(optimizer, given)  # type: ignore[arg-type]
    if not callable(given):
        raise InputError(f"schedule is a {type(given).__name__}: give a function epoch → rate, or a torch scheduler.")
    return FunctionSchedule(optimizer, given)  # type: ignore[arg-type]
