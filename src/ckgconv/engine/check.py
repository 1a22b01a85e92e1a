"""Checks of a recipe before its data is read: every value lies within its bounds, and every name has an entry."""

from ckgconv.checks import require
from ckgconv.engine.optimizers import OPTIMIZERS
from ckgconv.nn.models import check_kind
from ckgconv.pairs import encoding_of
from ckgconv.recipe import Recipe
from ckgconv.recipe.values import check_recipe
from ckgconv.tasks.fit import check_task


def check_run(recipe: Recipe) -> None:
    """Refuse values outside their bounds, names without an entry, and a metric that cannot judge the loss."""
    check_recipe(recipe)
    check_kind(recipe.model)
    encoding_of(recipe.model)
    check_task(recipe.training)
    OPTIMIZERS.check(recipe.training.optimizer)
    _check_outputs(recipe)


def _check_outputs(recipe: Recipe) -> None:
    """Refuse a number of outputs that the loss cannot read."""
    loss, outputs = recipe.training.loss, recipe.model.head.outputs
    fits = {"weighted_binary": outputs == 1, "cross_entropy": outputs > 1, "weighted_cross_entropy": outputs > 1}
    require(
        "loss" in recipe.given or fits.get(loss, True),
        f"model.head.outputs is {outputs}, but the loss {loss!r} needs "
        f"{'one' if outputs > 1 else 'one for each class'}: change either.",
    )
