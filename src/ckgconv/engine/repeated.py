"""What folds and replicates share: arguments of `train`, and mean and standard deviation over the runs."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ckgconv.engine.parts import GivenParts
from ckgconv.engine.run_data import GivenData
from ckgconv.engine.watcher import Watcher


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
