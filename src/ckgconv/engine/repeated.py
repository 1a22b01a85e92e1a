"""What folds and replicates share: runs one after the other, and mean and standard deviation over them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ckgconv.checks import require
from ckgconv.engine.parts import GivenParts
from ckgconv.engine.run import Run, train
from ckgconv.engine.run_data import GivenData
from ckgconv.engine.run_folder import has_run
from ckgconv.engine.watcher import Watcher
from ckgconv.files import valid_json, write_text
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


@dataclass(frozen=True)
class RepeatedRuns:
    """Runs that differ in their split alone, in order."""

    runs: Sequence[Run]
    name: ClassVar[str]  # of the runs: their number follows it in the names of their folders

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

    def to_json(self) -> dict[str, Any]:
        """What the file of `write` contains."""
        return {
            f"{self.name}s": len(self.runs),
            "metric": self.metric,
            "tested": dict(vars(self.tested)),
            "validated": dict(vars(self.validated)),
            **self.further(),
            "tests": [run.record.test for run in self.runs],
        }

    def further(self) -> dict[str, Any]:
        """What such runs report besides."""
        return {}

    def write(self, folder: Path) -> None:
        """folds.json or replicates.json, by the first process."""
        if self.runs[0].learner.fabric.is_global_zero:
            write_text(folder / f"{self.name}s.json", valid_json(self.to_json(), indent=1))


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
