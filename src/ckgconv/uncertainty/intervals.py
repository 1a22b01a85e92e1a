"""Split-conformal intervals of values: bounds from the residuals of validation rows.

    score       s_i = |y_i - ŷ_i|                       of one network
                s_i = |y_i - ŷ_i| / (σ_i + φ)           of several: σ_i is their deviation, φ its median over the rows
    quantile    q   = the ⌈(n + 1) p⌉-th smallest of n scores; undefined where that is more than n
    interval    ŷ ± q, or ŷ ± q (σ + φ)

If validation rows and new molecules are exchangeable, and validation rows were used for nothing else, the interval
contains the true value with probability p at least, on average over molecules. It says nothing about a single molecule.
The epoch of a network is chosen by the same validation rows, which makes their residuals a little too small.

Legend: n known validation rows, p level, M molecules, T outputs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ckgconv.checks import require

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """Of one output."""

    ascending: Values  # [n]
    floor: float | None = None  # φ; None: of one network

    def quantile(self, level: float) -> float:
        """q; NaN where n rows are too few for this level."""
        count = len(self.ascending)
        # 0.9 (n + 1) is 9.000000000000002 for n = 9.
        place = math.ceil((count + 1) * level - 1e-9)
        return float(self.ascending[place - 1]) if place <= count else math.nan

    @property
    def largest_level(self) -> float:
        """The largest level with a defined interval."""
        return len(self.ascending) / (len(self.ascending) + 1)


def check_level(level: float) -> None:
    """Refuse what is no level of an interval."""
    require(0.0 < level < 1.0, f"The level of intervals is {level}: give a number between 0 and 1, such as 0.9.")


def fitted_scores(predicted: Values, target: Values, deviation: Values | None) -> list[Scores]:
    """Of each output, from predictions, targets (NaN: unknown) and deviations [M, T] of validation rows."""
    found = []
    for output in range(predicted.shape[1]):
        known = np.isfinite(target[:, output]) & np.isfinite(predicted[:, output])
        residuals = np.abs(target[known, output] - predicted[known, output])
        if deviation is None or not known.any():
            found.append(Scores(np.sort(residuals)))
            continue
        between = deviation[known, output]
        # Members that agree everywhere have no deviation to divide by.
        floor = max(float(np.median(between)), float(np.finfo(np.float32).tiny))
        found.append(Scores(np.sort(residuals / (between + floor)), floor))
    return found


def bounds(
    scores: Sequence[Scores | None], level: float, predicted: Values, deviation: Values | None
) -> tuple[Values, Values]:
    """Lower and upper bounds [M, T] of predictions [M, T]; NaN where undefined, as for outputs without scores."""
    half = np.full_like(predicted, np.nan)
    for output, each in enumerate(scores):
        if each is None:
            continue
        width = 1.0 if each.floor is None or deviation is None else deviation[:, output] + each.floor
        half[:, output] = each.quantile(level) * width
    return predicted - half, predicted + half


@dataclass(frozen=True)
class Coverage:
    """How often intervals contain the target."""

    level: float
    share: float  # of the rows with a known target and an interval; NaN without one
    rows: int
    width: float  # mean over these rows


def coverage(level: float, lower: Values, upper: Values, target: Values) -> list[Coverage]:
    """Of each output, from bounds and targets [M, T]."""
    found = []
    for low, high, true in zip(lower.T, upper.T, target.T, strict=True):
        known = np.isfinite(low) & np.isfinite(high) & np.isfinite(true)
        inside = (low <= true) & (true <= high)
        rows = int(known.sum())
        share = float(inside[known].mean()) if rows else math.nan
        found.append(Coverage(level, share, rows, float((high - low)[known].mean()) if rows else math.nan))
    return found
