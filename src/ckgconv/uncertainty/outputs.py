"""Names of the outputs of a run."""

from ckgconv.engine.run import Run


def output_names(run: Run) -> tuple[str, ...]:
    """The targets; prediction, or prediction0, …, where these have no names."""
    outputs = run.recipe.model.head.outputs
    unnamed = ("prediction",) if outputs == 1 else tuple(f"prediction{index}" for index in range(outputs))
    targets = tuple(run.recipe.data.targets)
    return targets if len(targets) == outputs else unnamed
