"""Names of the outputs of a run, and which of them are probabilities of classes.

TARGET          a value or a label
TARGET_CLASS    the probability of a class, one output for each; by number where classes have no names
prediction, prediction0, …    where targets have no names
"""

from collections.abc import Sequence

from ckgconv.recipe import Recipe


def output_names(recipe: Recipe) -> tuple[str, ...]:
    """One name for each output."""
    outputs, targets = recipe.model.head.outputs, recipe.data.targets
    classes = recipe.data.classes or ((),) * len(targets)
    named = tuple(
        each
        for target, names in zip(targets, classes, strict=False)
        for each in ([f"{target}_{name}" for name in names] or [target])
    )
    if len(targets) == 1 and len(named) != outputs:
        return tuple(f"{targets[0]}_{number}" for number in range(outputs))
    unnamed = ("prediction",) if outputs == 1 else tuple(f"prediction{index}" for index in range(outputs))
    return named if len(named) == outputs else unnamed


def class_columns(recipe: Recipe) -> dict[str, tuple[int, tuple[str, ...]]]:
    """By target of classes, its first output and the names of the classes."""
    found, start = {}, 0
    for target, names in zip(recipe.data.targets, recipe.data.classes, strict=False):
        if names:
            found[target] = (start, names)
        start += max(1, len(names))
    return found


def most_probable(recipe: Recipe, rows: Sequence[Sequence[float] | None]) -> dict[str, list[str]]:
    """By target of classes, the name of the most probable one of each row; "" where a row has no prediction."""
    columns = {}
    for target, (start, names) in class_columns(recipe).items():
        cells = []
        for row in rows:
            own = [] if row is None else list(row[start : start + len(names)])
            cells.append(names[own.index(max(own))] if own else "")
        columns[target] = cells
    return columns
