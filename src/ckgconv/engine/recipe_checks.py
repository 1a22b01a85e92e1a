"""Checks of a recipe before its data is read: every value lies within its bounds, and every name has an entry."""

from ckgconv.checks import require
from ckgconv.engine.optimizers import OPTIMIZERS
from ckgconv.nn.models import check_kind
from ckgconv.pairs import encoding_of
from ckgconv.recipe import Recipe
from ckgconv.recipe.values import check_recipe
from ckgconv.tasks.fit import check_task
from ckgconv.tasks.losses import LOSSES


def check_run(recipe: Recipe) -> None:
    """Refuse values outside their bounds, names without an entry, and a metric that cannot judge the loss."""
    check_recipe(recipe)
    check_kind(recipe.model)
    encoding_of(recipe.model)
    check_task(recipe.training)
    OPTIMIZERS.check(recipe.training.optimizer)
    _check_outputs(recipe)
    _check_draws(recipe)


def _check_draws(recipe: Recipe) -> None:
    """Refuse a consistency that compares nothing."""
    training = recipe.training
    if not training.consistency:
        return
    require(
        training.draws > 1,
        f"training.consistency is {training.consistency:g}, but training.draws is {training.draws}: give 2 or more "
        f"draws to compare.",
    )
    classes = "loss" in recipe.given or LOSSES[training.loss].targets == "classes"
    require(
        classes and recipe.model.head.outputs > 1,
        f"training.consistency is {training.consistency:g}, but the loss {training.loss!r} predicts no probabilities "
        f"of several classes to compare: set it to 0.",
    )


def _check_outputs(recipe: Recipe) -> None:
    """Refuse a number of outputs that the loss cannot read."""
    loss, outputs = recipe.training.loss, recipe.model.head.outputs
    if loss == "mixed":
        total = sum(recipe.training.mixed_outputs)
        require(outputs == total, f"model.head.outputs is {outputs}, but the columns have {total}: make them equal.")
    fits = {"weighted_binary": outputs == 1, "cross_entropy": outputs > 1, "weighted_cross_entropy": outputs > 1}
    fits["focal_cross_entropy"] = outputs > 1
    require(
        "loss" in recipe.given or fits.get(loss, True),
        f"model.head.outputs is {outputs}, but the loss {loss!r} needs "
        f"{'one' if outputs > 1 else 'one for each class'}: change either.",
    )
