"""Whether a recipe's loss and metric exist and belong together."""

from ckgconv.checks import InputError, require
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS
from ckgconv.tasks.mixed import columns_of


def check_task(recipe: TrainingRecipe) -> None:
    """Refuse names without an entry, and metrics for another kind of targets than the loss."""
    loss = LOSSES[recipe.loss]
    kinds = {loss.targets}
    if loss.targets == "mixed":
        kinds |= {column.targets for column in columns_of(recipe, LOSSES.sound())}
    for field, names in (("metric", (recipe.metric,)), ("metrics", recipe.metrics)):
        for name in names:
            if METRICS[name].targets not in kinds:
                fitting = [each for each, metric in METRICS.sound().items() if metric.targets in kinds]
                raise InputError(
                    f"training.{field} is {name!r}, but a network trained with the loss {recipe.loss!r} is judged by "
                    f"{' or '.join(fitting)}: choose one of these."
                )
    require(
        not recipe.class_balance or (kinds != {"values"} and not recipe.loss.startswith("weighted")),
        f"training.class_balance is true, but the loss {recipe.loss!r} has no classes to balance, or weighs them "
        f"itself: leave it out.",
    )
