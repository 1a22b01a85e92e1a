"""Values of a recipe that no run can use, refused before one starts."""

from ckgconv.checks import require
from ckgconv.recipe import ModelRecipe, TrainingRecipe

# Which metrics can judge what a loss trains.
JUDGED_BY = {
    "l1": ("mae",),
    "binary": ("average_precision", "auroc"),
    "cross_entropy": ("accuracy", "sbm_accuracy"),
    "weighted_cross_entropy": ("accuracy", "sbm_accuracy"),
    "weighted_binary": ("accuracy", "sbm_accuracy"),
}


def check_model(recipe: ModelRecipe) -> None:
    """Widths, blocks and steps of a network."""
    for name in ("width", "blocks", "steps"):
        value = getattr(recipe, name)
        least = 0 if name == "steps" and recipe.encoding == "rd" else 1
        require(value >= least, f"model.{name} is {value}: give at least {least}.")
    for name in ("layers", "outputs"):
        value = getattr(recipe.head, name)
        require(value >= 1, f"model.head.{name} is {value}: give at least 1.")


def check_training(recipe: TrainingRecipe) -> None:
    """Epochs, batches, rates, and whether the metric fits the loss."""
    for name in ("epochs", "batch_size"):
        require(getattr(recipe, name) >= 1, f"training.{name} is {getattr(recipe, name)}: give at least 1.")
    for name in ("learning_rate", "clip_norm"):
        require(getattr(recipe, name) > 0, f"training.{name} is {getattr(recipe, name)}: give more than 0.")
    for name in ("warmup_epochs", "min_learning_rate", "weight_decay"):
        require(getattr(recipe, name) >= 0, f"training.{name} is {getattr(recipe, name)}: give 0 or more.")
    require(
        recipe.metric in JUDGED_BY[recipe.loss],
        f"training.metric is {recipe.metric!r}, but what loss {recipe.loss!r} trains is judged by "
        f"{' or '.join(JUDGED_BY[recipe.loss])}: choose that.",
    )
