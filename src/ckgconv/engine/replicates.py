"""Replicates: one run per seed of the split, and mean and standard deviation over them.

Replicate i splits the rows with the seed `data.split_seed` + i; the seed of the weights is the same in all. So their
spread is that of the split.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from ckgconv.checks import check_whole, require
from ckgconv.engine.repeated import MeanAndDeviation, TrainOptions, mean_and_deviation, train_each
from ckgconv.engine.run import Run
from ckgconv.files import valid_json, write_text
from ckgconv.recipe import Recipe
from ckgconv.recipes import recipe as recipe_of

# Splits that no seed changes.
FIXED = ("official", "scaffold", "column")


@dataclass(frozen=True)
class Replicates:
    """The runs of all replicates, in order."""

    runs: Sequence[Run]

    @property
    def metric(self) -> str:
        return self.runs[0].record.metric

    @property
    def tested(self) -> MeanAndDeviation:
        """Test metric of the best validation epoch of each."""
        return mean_and_deviation([run.record.test for run in self.runs])

    @property
    def validated(self) -> MeanAndDeviation:
        """Validation metric of that epoch."""
        return mean_and_deviation([None if run.record.best is None else run.record.best.val for run in self.runs])

    @property
    def others(self) -> dict[str, MeanAndDeviation]:
        """Further metrics of the test split, by name."""
        tests = [(run.record.metrics or {}).get("test", {}) for run in self.runs]
        return {name: mean_and_deviation([each.get(name) for each in tests]) for name in tests[0]}

    def to_json(self) -> dict[str, Any]:
        """What replicates.json contains."""
        return {
            "replicates": len(self.runs),
            "metric": self.metric,
            "tested": dict(vars(self.tested)),
            "validated": dict(vars(self.validated)),
            "metrics": {name: dict(vars(tested)) for name, tested in self.others.items()},
            "tests": [run.record.test for run in self.runs],
            "seconds": statistics.fmean(run.record.wall_s for run in self.runs),
        }


def train_replicates(
    recipe: Recipe | str, replicates: int = 3, folder: Path | str | None = None, **options: Unpack[TrainOptions]
) -> Replicates:
    """Train a recipe once per seed of its split.

    Args:
        recipe: a recipe, or the name of one; its `data.split_seed` is the first seed.
        replicates: how many, at least 2.
        folder: where the runs are kept, as replicate0, replicate1, … with replicates.json; None keeps them in memory.
        options: other arguments of `train`, the same for all.
    """
    check_whole("replicates", replicates, 2)
    recipe = recipe_of(recipe) if isinstance(recipe, str) else recipe
    numbers = range(replicates)
    folders = [None if folder is None else replicate_folder(folder, number) for number in numbers]
    found = Replicates(train_each([replicate_recipe(recipe, number) for number in numbers], folders, options))
    if folder is not None:
        write_replicates(Path(folder), found)
    return found


def replicate_recipe(recipe: Recipe, number: int) -> Recipe:
    """The recipe of one replicate."""
    split = recipe.data.split
    require(
        split not in FIXED,
        f"The split is {split!r}, which no seed changes, so replicates would be the same: use --split random or "
        f"scaffold_balanced.",
    )
    return replace(recipe, data=replace(recipe.data, split_seed=recipe.data.split_seed + number))


def replicate_folder(folder: Path | str, number: int) -> Path:
    """Where a replicate is kept."""
    return Path(folder) / f"replicate{number}"


def write_replicates(folder: Path, found: Replicates) -> None:
    """replicates.json, by the first process."""
    if found.runs[0].learner.fabric.is_global_zero:
        write_text(folder / "replicates.json", valid_json(found.to_json(), indent=1))
