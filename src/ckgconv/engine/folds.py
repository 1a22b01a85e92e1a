"""k-fold cross-validation: one run per fold, and mean and standard deviation over the folds.

    tested           of every fold, the test metric of its own best validation epoch
    validated        of every fold, the validation metric of that epoch
    common epoch     the one epoch e whose validation metric, averaged over the folds, is best
    at common epoch  of every fold, the validation metric of epoch e, as the GIN paper (Xu et al. 2019) reports it

No choice ever sees a test metric. `validated` and `at common epoch` are metrics of the graphs by which an epoch was
chosen, so both flatter the network; `tested` does not.
"""

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

from ckgconv.checks import check_whole
from ckgconv.engine.repeated import MeanAndDeviation, RepeatedRuns, TrainOptions, mean_and_deviation, train_each
from ckgconv.engine.run import Run
from ckgconv.recipe import Recipe
from ckgconv.recipes import recipe as recipe_of
from ckgconv.tasks.metrics import better


class FoldedRuns(RepeatedRuns):
    """The runs of all folds."""

    name: ClassVar[str] = "fold"

    @property
    def common_epoch(self) -> int:
        """The epoch whose mean validation metric is best, of those that every fold has reached."""
        metric, best = self.runs[0].learner.task.metric, 0
        means = [statistics.fmean(values) for values in zip(*(_curve(run) for run in self.runs), strict=False)]
        for epoch, mean in enumerate(means):
            if better(metric, mean, means[best]):
                best = epoch
        return best

    @property
    def at_common_epoch(self) -> MeanAndDeviation:
        """Validation metric of every fold at the common epoch."""
        return mean_and_deviation([_curve(run)[self.common_epoch] for run in self.runs])

    def further(self) -> dict[str, Any]:
        return {"common_epoch": self.common_epoch, "at_common_epoch": dict(vars(self.at_common_epoch))}


def train_folds(
    recipe: Recipe | str, folds: int = 10, folder: Path | str | None = None, **options: Unpack[TrainOptions]
) -> FoldedRuns:
    """Train a recipe once per fold of its data set.

    Args:
        recipe: a recipe, or the name of one; its `data.split_seed` draws the folds.
        folds: how many, at least 3.
        folder: where the runs are kept, as fold0, fold1, … with folds.json; None keeps them in memory.
        options: other arguments of `train`, the same for every fold.
    """
    check_whole("folds", folds, 3)
    recipe = recipe_of(recipe) if isinstance(recipe, str) else recipe
    folders = [None if folder is None else fold_folder(folder, fold) for fold in range(folds)]
    found = FoldedRuns(train_each([fold_recipe(recipe, folds, fold) for fold in range(folds)], folders, options))
    if folder is not None:
        found.write(Path(folder))
    return found


def fold_recipe(recipe: Recipe, folds: int, fold: int) -> Recipe:
    """The recipe of one fold."""
    return replace(recipe, data=replace(recipe.data, folds=folds, fold=fold))


def fold_folder(folder: Path | str, fold: int) -> Path:
    """Where the run of a fold is kept."""
    return Path(folder) / f"fold{fold}"


def _curve(run: Run) -> list[float]:
    return [epoch.val for epoch in run.record.epochs]
