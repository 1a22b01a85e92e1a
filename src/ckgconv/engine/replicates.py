"""Replicates: one run per seed of the split, and mean and standard deviation over them.

Replicate i splits the rows with the seed `data.split_seed` + i; the seed of the weights is the same in all. So their
spread is that of the split.
"""

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Unpack

from ckgconv.checks import check_whole, require
from ckgconv.engine.repeated import MeanAndDeviation, RepeatedRuns, TrainOptions, mean_and_deviation, train_each
from ckgconv.recipe import Recipe
from ckgconv.recipes import recipe as recipe_of

# Splits that no seed changes.
FIXED = ("official", "scaffold", "column")


class Replicates(RepeatedRuns):
    """The runs of all replicates."""

    name: ClassVar[str] = "replicate"

    @property
    def others(self) -> dict[str, MeanAndDeviation]:
        """Further metrics of the test split, by name."""
        tests = [(run.record.metrics or {}).get("test", {}) for run in self.runs]
        return {name: mean_and_deviation([each.get(name) for each in tests]) for name in tests[0]}

    def further(self) -> dict[str, Any]:
        return {"metrics": {name: dict(vars(tested)) for name, tested in self.others.items()}}

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "seconds": fmean(run.record.wall_s for run in self.runs)}


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
        found.write(Path(folder))
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
