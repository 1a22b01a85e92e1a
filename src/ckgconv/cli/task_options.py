"""Options of training and search that choose loss and metrics, by the names that people use, for any recipe."""

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from ckgconv.checks import require
from ckgconv.recipe import Recipe, TrainingRecipe
from ckgconv.recipes import with_value
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.mixed import columns_of
from ckgconv.tasks.names import loss_of, metric_of
from ckgconv.tasks.task import Targets


@dataclass(frozen=True)
class TaskOptions:
    """Loss and metrics of a run."""

    loss_function: Annotated[
        str | None,
        typer.Option("--loss-function", "-l", help="mae, mse, huber; bce, focal; ce, focal.", metavar="NAME"),
    ] = None
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "--metric",
            help="rmse mae r2 roc-auc pr-auc mcc f1 …; the first one chooses the epoch.",
            metavar="NAME",
        ),
    ] = None
    class_balance: Annotated[
        bool, typer.Option("--class-balance", help="Weigh classes by the inverse of their frequency.")
    ] = False

    @property
    def given(self) -> list[str]:
        """Paths of the values given."""
        named = {
            "training.loss": self.loss_function is not None,
            "training.mixed": self.loss_function is not None,
            "training.metric": bool(self.metrics),
            "training.metrics": bool(self.metrics),
            "training.class_balance": self.class_balance,
        }
        return [path for path, is_given in named.items() if is_given]

    def applied(self, chosen: Recipe) -> Recipe:
        """The recipe with the values given."""
        training = chosen.training
        if self.loss_function is not None:
            training = _with_loss(training, self.loss_function)
        if self.metrics:
            kinds = _kinds(training)
            names = [metric_of(name, kinds) for name in self.metrics]
            require(len(set(names)) == len(names), "The same metric was named twice in --metrics: name each once.")
            training = replace(training, metric=names[0], metrics=tuple(names[1:]))
        chosen = replace(chosen, training=training)
        return with_value(chosen, "training.class_balance=true") if self.class_balance else chosen


def _kinds(training: TrainingRecipe) -> list[Targets]:
    """Of the targets of a run: that of its loss, and of its columns where these differ."""
    loss = LOSSES[training.loss]
    columns = columns_of(training, LOSSES.sound()) if loss.targets == "mixed" else ()
    return [loss.targets, *dict.fromkeys(column.targets for column in columns)]


def _with_loss(training: TrainingRecipe, name: str) -> TrainingRecipe:
    """Of targets of several kinds, the columns that the loss fits have it."""
    kinds = _kinds(training)
    if kinds[0] != "mixed":
        return replace(training, loss=loss_of(name, kinds))
    found: dict[Targets, str] = {}
    for kind in kinds[1:]:
        entry = loss_of(name, kinds[1:]) if not found else loss_of(name, [kind, *kinds[1:]])
        found[LOSSES[entry].targets] = entry
    return replace(training, mixed=tuple(found.get(LOSSES[each].targets, each) for each in training.mixed))
