"""Names of the outputs of a run."""

from ckgconv.engine import output_names as names
from ckgconv.engine.run import Run


def output_names(run: Run) -> tuple[str, ...]:
    """The targets; of classes one name for each; prediction, or prediction0, …, where targets have no names."""
    return names.output_names(run.recipe)
