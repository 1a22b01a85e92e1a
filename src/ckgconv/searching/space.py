"""What a search varies: values of a recipe by their paths, each with its choices or its bounds.

    {"model.width": {"choices": [32, 64]}, "training.learning_rate": {"low": 3e-4, "high": 5e-3, "log": true}}

A file of this form replaces the tables below. Bounds are whole numbers where the recipe's value is one. Every path,
choice and bound is checked against the recipe before the first trial.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckgconv.checks import InputError, require
from ckgconv.files import parse_json, read_text, valid_json
from ckgconv.recipe import Recipe
from ckgconv.recipe.format import MOST_SETTINGS
from ckgconv.recipes import with_value
from ckgconv.recipes.pretraining import PRETRAINED, fits_pretrained
from ckgconv.tasks.losses import LOSSES

Entry = dict[str, Any]
Plain = bool | int | float | str | None

# Paths that a recipe does not have are left out, and so are losses for other targets than its own.
FROM_SCRATCH: dict[str, Entry] = {
    "model.width": {"choices": [32, 48, 64, 96]},
    "model.blocks": {"low": 2, "high": 6},
    "model.support": {"choices": [3, 5, "global"]},
    "model.kernel.dropout": {"low": 0.0, "high": 0.4},
    "training.learning_rate": {"low": 3e-4, "high": 5e-3, "log": True},
    "training.batch_size": {"choices": [16, 32, 64]},
    "training.epochs": {"choices": [30, 50, 80]},
    "training.loss": {"choices": ["l1", "huber"]},
}
# Where training begins with other weights, which fix width and depth.
BEGUN: dict[str, Entry] = {
    "training.freeze": {"choices": [0, 1, 2]},
    "model.head.dropout": {"low": 0.0, "high": 0.4},
    "model.kernel.dropout": {"low": 0.0, "high": 0.4},
    "training.learning_rate": {"low": 1e-4, "high": 3e-3, "log": True},
    "training.batch_size": {"choices": [16, 32, 64]},
    "training.epochs": {"choices": [10, 20, 40]},
    "training.loss": {"choices": ["l1", "huber"]},
}
NAMES = {"choices", "low", "high", "log", "step"}


@dataclass(frozen=True)
class Space:
    """Checked entries, by path."""

    entries: dict[str, Entry]

    def distributions(self) -> dict[str, Any]:
        """The same for Optuna."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        found: dict[str, Any] = {}
        for path, entry in self.entries.items():
            if "choices" in entry:
                found[path] = CategoricalDistribution(entry["choices"])
                continue
            low, high, log, step = entry["low"], entry["high"], entry.get("log", False), entry.get("step")
            if isinstance(low, int) and isinstance(high, int):
                found[path] = IntDistribution(low, high, log=log, step=1 if step is None else step)
            else:
                found[path] = FloatDistribution(low, high, log=log, step=step)
        return found

    def own_values(self, recipe: Recipe) -> dict[str, Plain]:
        """What the recipe itself has at the paths, of those that lie in the space."""
        found: dict[str, Plain] = {}
        for path, entry in self.entries.items():
            value = value_at(recipe, path)
            inside = value in entry["choices"] if "choices" in entry else entry["low"] <= value <= entry["high"]
            if inside:
                found[path] = value
        return found


def read_space(file: Path | None, recipe: Recipe, given: Sequence[str] = ()) -> Space:
    """The space of a file, or the default one, checked against a recipe.

    `given` are paths whose values were given with the command: the default space leaves them as they are, and a file
    that varies one is refused.
    """
    if file is None:
        default = BEGUN if recipe.training.init else FROM_SCRATCH
        kept = {path: _fitting(path, entry, recipe, given) for path, entry in default.items()}
        found = {path: entry for path, entry in kept.items() if entry and _applies(recipe, path, entry)}
        require(bool(found), "Every setting that a search varies was given: leave some out, or name others by --space.")
        return Space(found)
    text = read_text(file, "give a JSON file of paths and their choices or bounds.", MOST_SETTINGS)
    try:
        values = parse_json(text)
        require(isinstance(values, dict) and bool(values), "it is no group of paths")
        for path in values:
            require(not is_given(path, given), f"it varies {path}, whose value was given with the command")
        space = checked(values, recipe)
    except InputError as error:
        raise InputError(f"{file} is no search space ({str(error).rstrip('.')}): see docs/search.md.") from error
    _check_initial(file, space, recipe, given)
    return space


def is_given(path: str, given: Sequence[str]) -> bool:
    """Whether the value at a path, or a group that it lies in, was given."""
    return any(path == each or path.startswith(f"{each}.") for each in given)


def _fitting(path: str, entry: Entry, recipe: Recipe, given: Sequence[str]) -> Entry | None:
    """A default entry without what was given; epochs leave room for a warm-up that was."""
    if is_given(path, given):
        return None
    if path == "training.epochs" and is_given("training.warmup_epochs", given):
        choices = [epochs for epochs in entry["choices"] if epochs // 2 >= recipe.training.warmup_epochs]
        return {"choices": choices} if choices else None
    return entry


def _check_initial(file: Path, space: Space, recipe: Recipe, given: Sequence[str]) -> None:
    """Refuse to vary what the pretrained weights fix where these were asked for: trials would begin without them."""
    if "training.init" not in given or recipe.training.init != PRETRAINED:
        return
    for path, entry in space.entries.items():
        for value in entry.get("choices", (entry.get("low"), entry.get("high"))):
            require(
                fits_pretrained(applied(recipe, {path: value}).model),
                f"{file} varies {path}, which the weights given with --init fix: leave out one of them.",
            )


def checked(values: dict[str, Any], recipe: Recipe) -> Space:
    """Entries that the recipe can take."""
    for path, entry in values.items():
        require(isinstance(entry, dict), f"{path} is {entry!r}, not a group of choices or bounds")
        unknown = set(entry) - NAMES
        require(not unknown, f"{path} has {min(unknown, default='')!r}, which is none of {', '.join(sorted(NAMES))}")
        if "choices" in entry:
            _check_choices(path, entry, recipe)
        else:
            _check_bounds(path, entry, recipe)
    return Space(values)


def _check_choices(path: str, entry: Entry, recipe: Recipe) -> None:
    choices = entry["choices"]
    require(set(entry) == {"choices"}, f"{path} has choices and bounds: give one of them")
    require(isinstance(choices, list) and len(choices) > 0, f"the choices of {path} are no list of values")
    for choice in choices:
        require(not isinstance(choice, list | dict), f"{path} has the choice {choice!r}: give plain values")
        with_value(recipe, assignment(path, choice))
    require(len({valid_json(each) for each in choices}) == len(choices), f"a choice of {path} is given twice")


def _check_bounds(path: str, entry: Entry, recipe: Recipe) -> None:
    for name in ("low", "high"):
        value = entry.get(name)
        require(isinstance(value, int | float) and not isinstance(value, bool), f"{path} has no number as its {name!r}")
        with_value(recipe, assignment(path, value))
    low, high, log, step = entry["low"], entry["high"], entry.get("log", False), entry.get("step")
    require(low <= high, f"{path} has low {low} above high {high}")
    require(isinstance(log, bool), f"{path} has log {log!r}, not true or false")
    require(not log or low > 0, f"{path} has log bounds from {low}: give a low above 0")
    require(not (log and step is not None), f"{path} has log and step: give one of them")
    whole = isinstance(low, int) and isinstance(high, int)
    fits = step is None or (isinstance(step, int if whole else int | float) and not isinstance(step, bool) and step > 0)
    require(fits, f"{path} has step {step!r}: give a positive number, whole between whole bounds")
    if not whole:  # a value between the bounds may have a fraction
        with_value(recipe, assignment(path, (low + high) / 2 if (low + high) / 2 % 1 else (low + high) / 2 + 1e-3))


def assignment(path: str, value: Any) -> str:
    """As `with_value` reads it."""
    return f"{path}={value if isinstance(value, str) else valid_json(value)}"


def value_at(recipe: Recipe, path: str) -> Any:
    """The recipe's value at a path that it has."""
    value: Any = recipe
    for name in path.split("."):
        value = getattr(value, name)
    return value


def applied(recipe: Recipe, values: dict[str, Any]) -> Recipe:
    """The recipe with these values."""
    for path, value in values.items():
        recipe = with_value(recipe, assignment(path, value))
    return recipe


def _applies(recipe: Recipe, path: str, entry: Entry) -> bool:
    """Whether the default entry belongs to a recipe."""
    try:
        checked({path: entry}, recipe)
    except (AttributeError, InputError):
        return False
    own = LOSSES[recipe.training.loss].targets
    return path != "training.loss" or all(LOSSES[each].targets == own for each in entry["choices"])
