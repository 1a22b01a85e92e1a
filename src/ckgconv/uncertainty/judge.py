"""What intervals and calibrated probabilities are worth on a split that did not fit them.

    coverage     share of the rows whose target lies in the interval, which the level promises
    log loss     -mean log p(true label or class); Brier score: mean squared error of the probabilities

Legend: M rows, T outputs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from ckgconv.engine.output_names import class_columns
from ckgconv.engine.run import Run
from ckgconv.tasks.mixed import class_of
from ckgconv.uncertainty.fit import SplitOutcomes, split_outcomes
from ckgconv.uncertainty.intervals import Coverage, Values, coverage
from ckgconv.uncertainty.kept import Uncertainty
from ckgconv.uncertainty.predictor import LEVEL, Predictor


@dataclass(frozen=True)
class Sharpness:
    """Of probabilities before and after calibration."""

    rows: int
    log_loss: float
    log_loss_calibrated: float
    brier: float
    brier_calibrated: float


@dataclass(frozen=True)
class Judged:
    """Of each output; empty where nothing was fitted."""

    coverage: dict[str, Coverage]
    calibration: dict[str, Sharpness]
    notes: tuple[str, ...]  # what is undefined and why

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        found: dict[str, Any] = {}
        if self.coverage:
            found["coverage"] = {name: asdict(each) for name, each in self.coverage.items()}
        if self.calibration:
            found["calibration"] = {name: asdict(each) for name, each in self.calibration.items()}
        return found | ({"notes": list(self.notes)} if self.notes else {})


def judge(
    runs: Sequence[Run],
    uncertainty: Uncertainty,
    split: str = "test",
    level: float = LEVEL,
    outcomes: SplitOutcomes | None = None,
) -> Judged:
    """Of runs that were opened with their data; `outcomes` are those of the split, where they are known already."""
    predictor = Predictor(runs, uncertainty, level)
    found = outcomes or split_outcomes(runs, split)
    lower, upper = predictor.interval(found.values, found.deviation)
    covered = {}
    if lower is not None and upper is not None:
        every = zip(predictor.names, coverage(level, lower, upper, found.target), uncertainty.scores, strict=True)
        covered = {name: each for name, each, scores in every if scores is not None}
    calibrated = predictor.calibrated(found.values)
    sharp = {}
    if calibrated is not None and calibrated.shape == found.target.shape:
        classes = class_columns(runs[0].recipe)
        inside = {place for start, names in classes.values() for place in range(start, start + len(names))}
        columns = zip(predictor.names, found.values.T, calibrated.T, found.target.T, strict=True)
        for place, (name, *each) in enumerate(columns):
            if place not in inside and np.isfinite(each[1]).any():
                sharp[name] = _sharpness(*each)
        for name, (start, names) in classes.items():
            own = slice(start, start + len(names))
            if np.isfinite(calibrated[:, own]).any():
                target = class_of(torch.from_numpy(found.target[:, own])).double().numpy()
                sharp[name] = _sharpness_of_classes(found.values[:, own], calibrated[:, own], target)
    elif calibrated is not None:
        sharp = {"classes": _sharpness_of_classes(found.values, calibrated, found.target[:, 0])}
    return Judged(covered, sharp, predictor.notes)


def _sharpness(before: Values, after: Values, label: Values) -> Sharpness:
    """Of one label [M]."""
    known = label >= 0  # false for NaN
    truth = label[known]
    losses, scores = [], []
    for probability in (before[known], after[known]):
        inside = probability.clip(1e-12, 1 - 1e-12)
        losses.append(-float(np.mean(np.log(np.where(truth > 0, inside, 1 - inside)))))
        scores.append(float(np.mean((probability - truth) ** 2)))
    return Sharpness(int(known.sum()), *losses, *scores)


def _sharpness_of_classes(before: Values, after: Values, target: Values) -> Sharpness:
    """Of classes [M, C]."""
    known = target >= 0
    truth = target[known].astype(np.int64)
    hit = np.eye(before.shape[1])[truth]
    losses, scores = [], []
    for probability in (before[known], after[known]):
        losses.append(-float(np.mean(np.log(probability[np.arange(len(truth)), truth].clip(1e-12)))))
        scores.append(float(np.mean(((probability - hit) ** 2).sum(1))))
    return Sharpness(int(known.sum()), *losses, *scores)
