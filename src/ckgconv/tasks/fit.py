"""Whether a recipe's loss and metric exist and belong together."""

from ckgconv.checks import InputError
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS


def check_task(recipe: TrainingRecipe) -> None:
    """Refuse names without an entry, and a metric of other targets than those the loss is trained on."""
    targets = LOSSES[recipe.loss].targets
    if METRICS[recipe.metric].targets == targets:
        return
    judges = [name for name in METRICS if METRICS[name].targets == targets]
    raise InputError(
        f"training.metric is {recipe.metric!r}, but what loss {recipe.loss!r} trains is judged by "
        f"{' or '.join(judges)}: choose that."
    )
