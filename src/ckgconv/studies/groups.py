"""Runs grouped by what they are runs of: one recipe and precision, with several seeds or folds.

Two groups whose recipes have the same name are told apart in their labels by the values in which they differ.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ckgconv.checks import InputError, require
from ckgconv.engine.record import Record, load_record
from ckgconv.studies.outcomes import trained_recipe

# In these the runs of a group may differ: what is tested changes with them, not what is trained.
LIKE_SEEDS = ("data.fold", "data.split_seed", "data.split_number", "paper_test")
# Differences that a label names.
MOST_DIFFERENCES = 3


@dataclass(frozen=True)
class Member:
    """A run, finished or not."""

    path: Path
    record: Record

    @property
    def state(self) -> str:
        """Whether it is finished, in words."""
        if self.record.test is not None:
            return "finished"
        planned, done = self.record.recipe.get("training", {}).get("epochs"), len(self.record.epochs)
        if self.record.ended:
            return "finished, no test metric"
        untested = self.record.data is not None and self.record.data.test == 0
        return f"{'no test split' if untested else 'unfinished'}: {done} of {planned or 'unknown'} epochs"


@dataclass(frozen=True)
class Group:
    """Runs of one recipe."""

    label: str
    members: tuple[Member, ...]

    @property
    def finished(self) -> tuple[Record, ...]:
        """Records of the runs that have been tested."""
        return tuple(member.record for member in self.members if member.record.test is not None)

    @property
    def tests(self) -> list[float]:
        """Test metric at the best validation epoch."""
        return [record.test for record in self.finished if record.test is not None]

    @property
    def vals(self) -> list[float]:
        """Validation metric at the best epoch; of unfinished runs too where none is finished."""
        records = self.finished or tuple(member.record for member in self.members)
        return [record.best.val for record in records if record.best is not None]

    @property
    def digests(self) -> set[str]:
        """Of the data that its runs were trained on, as far as their records say."""
        return {member.record.data.digest for member in self.members if member.record.data is not None}


def read_members(paths: Sequence[Path]) -> list[Member]:
    """The runs in these folders (or record.json files); refused unless all have one metric and one data set."""
    members = [Member(path, load_record(path)) for path in paths]
    places = [path.resolve() for path in paths]
    for place, member in enumerate(members):
        require(places[place] not in places[:place], f"{member.path} was given twice: give each run once.")
    first = members[0]
    for member in members[1:]:
        for what, one, other in (
            ("metric", first.record.metric, member.record.metric),
            ("data set", first.record.data_name, member.record.data_name),
        ):
            require(
                one == other,
                f"{first.path} and {member.path} differ in their {what} ({one} and {other}): compare runs of the same "
                f"{what}.",
            )
    return members


def grouped(members: Sequence[Member]) -> list[Group]:
    """Groups in the order of their first runs."""
    groups: dict[str, list[Member]] = {}
    values = {}
    for member in members:
        flat = _values(member.record)
        key = repr(sorted(flat.items()))
        values[key] = flat
        groups.setdefault(key, []).append(member)
    labels = _labels([values[key] for key in groups])
    return [Group(label, tuple(each)) for label, each in zip(labels, groups.values(), strict=True)]


def _values(record: Record) -> dict[str, str]:
    """All values of a recipe by their paths, and the precision."""
    try:
        recipe = asdict(trained_recipe(record))
    except InputError:  # of another version, or of a package that is not installed
        recipe = record.recipe
    flat = _flattened(recipe, "")
    return {name: str(value) for name, value in flat.items() if name not in LIKE_SEEDS} | {
        "precision": record.precision
    }


def _flattened(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flattened(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _labels(recipes: list[dict[str, str]]) -> list[str]:
    """The names of the recipes, with what distinguishes those of one name."""
    labels = []
    for recipe in recipes:
        same = [other for other in recipes if other["name"] == recipe["name"]]
        paths = dict.fromkeys(path for other in same for path in other)
        differing = [path for path in paths if len({other.get(path) for other in same}) > 1]
        shown = [f"{path} {recipe[path]}" for path in differing if path in recipe][:MOST_DIFFERENCES]
        more = ["…"] if len(differing) > MOST_DIFFERENCES else []
        labels.append(recipe["name"] + (f" ({', '.join([*shown, *more])})" if shown else ""))
    return [f"{label}, number {place + 1}" if labels.count(label) > 1 else label for place, label in enumerate(labels)]
