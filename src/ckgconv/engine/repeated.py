"""What folds and replicates share: runs one after the other, and mean and standard deviation over them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ckgconv.checks import require
from ckgconv.engine.parts import GivenParts
from ckgconv.engine.run import Run, train
from ckgconv.engine.run_data import GivenData
from ckgconv.engine.run_folder import has_run
from ckgconv.engine.watcher import Watcher
from ckgconv.recipe import Recipe


class TrainOptions(GivenParts, total=False):
    """Arguments of `train` that all runs share."""

    seed: int
    data: GivenData
    resume: bool
    device: str
    precision: str
    watcher: Watcher | None


@dataclass(frozen=True)
class MeanAndDeviation:
    """Mean and sample standard deviation over runs; NaN where a value is."""

    mean: float
    sd: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.sd:.4f}"


def mean_and_deviation(values: Sequence[float | None]) -> MeanAndDeviation:
    """Of one or more values; None is NaN, as is the deviation of a single one."""
    known = [float("nan") if value is None else value for value in values]
    defined = len(known) > 1 and all(value == value for value in known)
    return MeanAndDeviation(statistics.fmean(known), statistics.stdev(known) if defined else float("nan"))


def train_each(recipes: Sequence[Recipe], folders: Sequence[Path | None], options: TrainOptions) -> list[Run]:
    """A run of each recipe in its folder; to resume is to start those that have not begun, where another one has."""
    begun = [folder is None or has_run(folder) for folder in folders]
    resume = options.get("resume", False)
    place = None if folders[0] is None else folders[0].parent
    require(any(begun) or not resume, f"{place} holds no run to resume: start it with resume=False.")
    runs = []
    for recipe, folder, has_begun in zip(recipes, folders, begun, strict=True):
        options["resume"] = resume and has_begun
        runs.append(train(recipe, folder=folder, **options))
    return runs
