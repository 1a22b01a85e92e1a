"""Checks of a recipe before its data is read: every value lies within its bounds, and every name has an entry."""

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
