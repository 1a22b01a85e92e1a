"""Calibrated probabilities: a map of logits with one or two numbers, fitted on validation rows.

    labels, or two classes    p' = sigmoid(a logit(p) + b)     Platt's scaling, with his smoothed targets
    more classes              p' = softmax(a log p)            temperature 1/a

a > 0 keeps the order of the rows, so that rankings such as AUROC stay as they are. Two numbers are fitted by few rows,
where a step function (isotonic regression) would follow the noise. Rows that a network classifies without an error
would have an infinite a: classes pay (a - 1)² / 2n beside the loss, and a stays within `SLOPES`.

Probabilities stay as they are (a = 1, b = 0) unless their log loss gets smaller by it: on the rows that were fitted,
and, with one fifth of the rows left out at a time, on those that were not, there by more than the standard error. The
epoch of the network was chosen by the same rows, which makes them look better than others will be.

Legend: n known validation rows, M molecules, T outputs, C classes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

Values = NDArray[np.float64]
# Fewer known rows, or fewer of a class, say next to nothing about two numbers.
FEWEST_ROWS, FEWEST_OF_CLASS = 20, 5
STEPS = 100
SLOPES = (0.1, 10.0)
PARTS = 5
Loss = Callable[[Tensor, Tensor], Tensor]  # log loss of each row, from the values of a and b and the rows
Fit = Callable[[Tensor], list[float]]  # a and b of rows


@dataclass(frozen=True)
class Calibration:
    """Of one output, or of all classes together."""

    slope: float  # a
    offset: float  # b


def calibrate_labels(probability: Values, label: Values) -> Calibration | str:
    """Platt's scaling of one output from probabilities [n] and labels [n], 0 or 1 where known; or why none."""
    known = np.isfinite(probability) & (label >= 0)
    logits = _logits(torch.from_numpy(probability[known]))
    labels = torch.from_numpy(label[known]).double()
    positive, rows = int(labels.sum()), len(labels)
    fewest = min(positive, rows - positive)
    if rows < FEWEST_ROWS or fewest < FEWEST_OF_CLASS:
        return f"{rows} validation rows, {fewest} of the rarer class, are too few to calibrate"

    def log_loss(values: Tensor, chosen: Tensor) -> Tensor:
        shown = values[0] * logits[chosen] + values[1]
        return F.binary_cross_entropy_with_logits(shown, labels[chosen], reduction="none")

    def fit(chosen: Tensor) -> list[float]:
        own, count = logits[chosen], len(chosen)
        ones = labels[chosen].sum()
        smoothed = torch.where(labels[chosen] > 0, (ones + 1) / (ones + 2), 1 / (count - ones + 2))
        slope, _ = _minimised(lambda at: F.binary_cross_entropy_with_logits(at[0] * own + at[1], smoothed), [1.0, 0.0])
        if not slope > 0:
            return [slope, 0.0]
        slope = min(max(slope, SLOPES[0]), SLOPES[1])
        return [slope, *_minimised(lambda at: F.binary_cross_entropy_with_logits(slope * own + at[0], smoothed), [0.0])]

    return _chosen(fit, log_loss, rows)


def calibrate_classes(probability: Values, target: NDArray[np.int64]) -> Calibration | str:
    """One temperature from probabilities [n, C] and classes [n], -1: unknown; or why none."""
    known = target >= 0
    logs = torch.from_numpy(probability[known]).clamp(min=1e-12).log()
    classes = torch.from_numpy(target[known])
    if len(classes) < FEWEST_ROWS:
        return f"{len(classes)} validation rows are too few to calibrate"

    def log_loss(values: Tensor, chosen: Tensor) -> Tensor:
        return F.cross_entropy(values[0] * logs[chosen], classes[chosen], reduction="none")

    def fit(chosen: Tensor) -> list[float]:
        def paid(values: Tensor) -> Tensor:
            return log_loss(values, chosen).mean() + (values[0] - 1).square() / (2 * len(chosen))

        (slope,) = _minimised(paid, [1.0])
        return [min(max(slope, SLOPES[0]), SLOPES[1]) if slope > 0 else slope, 0.0]

    return _chosen(fit, log_loss, len(classes))


def calibrated_labels(calibration: Calibration, probability: Values) -> Values:
    """Calibrated probabilities [M] of one output."""
    logits = _logits(torch.from_numpy(probability))
    return (calibration.slope * logits + calibration.offset).sigmoid().numpy()


def calibrated_classes(calibration: Calibration, probability: Values) -> Values:
    """Calibrated probabilities [M, C]."""
    logs = torch.from_numpy(probability).clamp(min=1e-12).log()
    return (calibration.slope * logs).softmax(-1).numpy()


def _logits(probability: Tensor) -> Tensor:
    # A probability of 0 or 1 has no finite logit.
    return probability.clamp(1e-12, 1 - 1e-12).logit()


def _chosen(fit: Fit, log_loss: Loss, rows: int) -> Calibration | str:
    """What was fitted on all rows, or no change where that is no better; or why there is nothing to fit."""
    every, identity = torch.arange(rows), torch.tensor([1.0, 0.0], dtype=torch.float64)
    slope, offset = fit(every)
    if not (np.isfinite([slope, offset]).all() and slope > 0):
        return "the network does not rank the validation rows better than chance, so there is nothing to calibrate"
    before, gained = log_loss(identity, every), torch.zeros(rows, dtype=torch.float64)
    for part in range(PARTS):
        inside = every % PARTS == part
        values = torch.tensor(fit(every[~inside]), dtype=torch.float64)
        gained[inside] = before[inside] - log_loss(values, every[inside])
    after = log_loss(torch.tensor([slope, offset], dtype=torch.float64), every)
    better = bool(after.mean() < before.mean()) and bool(gained.mean() > gained.std() / rows**0.5)
    return Calibration(slope, offset) if better else Calibration(1.0, 0.0)


def _minimised(loss: Callable[[Tensor], Tensor], start: list[float]) -> list[float]:
    """Where a convex loss of few numbers is smallest."""
    values = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([values], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        current = loss(values)
        current.backward()
        return current

    optimizer.step(closure)
    found: list[float] = values.detach().tolist()
    return found
