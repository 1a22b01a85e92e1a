"""Parts of a run given in Python in place of those that its recipe names.

A recipe cannot name them, so its field `given` lists which were: a saved run asks for them again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch.nn import Parameter

from ckgconv.checks import InputError, require, shown
from ckgconv.engine.callbacks import check_callbacks
from ckgconv.engine.own_model import GivenModel, given_model
from ckgconv.engine.schedule import GivenSchedule
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.models import build_model
from ckgconv.recipe import Recipe
from ckgconv.registry import nearest
from ckgconv.tasks.given import GivenLoss, GivenMetric

GivenOptimizer = Callable[[Iterable[Parameter]], torch.optim.Optimizer]
# What changes nothing about the network that is trained: a saved run does not ask for it again.
ASIDE = ("callbacks", "test")


class OpenedParts(TypedDict, total=False):
    """Parts that an opened run needs again."""

    model: GivenModel
    metric: GivenMetric


class GivenParts(OpenedParts, total=False):
    """Parts that `train` accepts by name."""

    loss: GivenLoss
    optimizer: GivenOptimizer
    schedule: GivenSchedule
    callbacks: Sequence[Any]
    test: bool


@dataclass(frozen=True)
class Parts:
    """Parts given in Python; None: what the recipe names.

    Args:
        model: a torch module from PyG `Data` to predictions, of which a copy is trained; or a function that makes one,
            called after the run's seed is set.
        loss: (prediction, target) → mean, of known targets (`tasks.given`), or a `Loss`.
        metric: a torchmetrics object, an `OwnMetric` or a `Metric`.
        optimizer: parameters → torch optimiser, whose state of each parameter is tensors.
        schedule: epoch → learning rate, or a torch scheduler such as `partial(StepLR, step_size=10)`.
        callbacks: objects with `on_step` or `on_epoch` (`engine.callbacks`).
        test: whether the network of the best epoch is tested at the end; otherwise `record_test` can do so later.
    """

    model: GivenModel | None = None
    loss: GivenLoss | None = None
    metric: GivenMetric | None = None
    optimizer: GivenOptimizer | None = None
    schedule: GivenSchedule | None = None
    callbacks: Sequence[Any] = ()
    test: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Which parts were given that a saved run asks for again."""
        return tuple(name for name in _names() if name not in ASIDE and getattr(self, name) is not None)

    def named_in(self, recipe: Recipe) -> Recipe:
        """The recipe with the parts given; refused where one that it was saved with is missing."""
        self.check(recipe, recipe.given, "The recipe")
        return replace(recipe, given=self.names)

    def check(self, recipe: Recipe, needed: Sequence[str], where: Path | str) -> None:
        """Refuse to do without a part that was given when the run was trained."""
        for name in recipe.given:
            if name in needed and name not in self.names:
                raise InputError(f"{where} was trained with {name} given in Python: give it again there, as {name}=….")

    def build_model(self, recipe: Recipe) -> GraphModel:
        """The network of a run, with parameters drawn by torch's generator unless a module was given."""
        return build_model(recipe.model) if self.model is None else given_model(self.model, recipe.model)

    def make_optimizer(self, parameters: Iterable[Parameter]) -> torch.optim.Optimizer | None:
        """The optimiser given; None without one."""
        if self.optimizer is None:
            return None
        require(callable(self.optimizer), f"optimizer is {shown(self.optimizer)}: give a function of parameters.")
        made = self.optimizer(parameters)
        require(
            isinstance(made, torch.optim.Optimizer),
            f"optimizer made a {type(made).__name__}: give a function from parameters to a torch optimiser.",
        )
        return made


def parts_of(given: Mapping[str, Any]) -> Parts:
    """The parts of a call, by name."""
    for name in given:
        require(name in _names(), f"train has no argument {name!r}: {nearest(name, list(_names()))}")
    parts = Parts(**given)
    check_callbacks(parts.callbacks)
    return parts


def _names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(Parts))
