"""Whether a recipe's loss and metric exist and belong together."""

from ckgconv.checks import InputError
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS


def check_task(recipe: TrainingRecipe) -> None:
    """Refuse names without an entry, and a metric for another kind of targets than the loss."""
    targets = LOSSES[recipe.loss].targets
    if METRICS[recipe.metric].targets == targets:
        return
    fitting = [name for name, metric in METRICS.sound().items() if metric.targets == targets]
    raise InputError(
        f"training.metric is {recipe.metric!r}, but a network trained with the loss {recipe.loss!r} is judged by "
        f"{' or '.join(fitting)}: choose one of these."
    )
