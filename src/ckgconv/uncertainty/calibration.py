"""Calibrated probabilities: a map of logits with one or two numbers, fitted on validation rows.

    labels, or two classes    p' = sigmoid(a logit(p) + b)     Platt's scaling, with his smoothed targets
    more classes              p' = softmax(a log p)            temperature 1/a

a > 0 keeps the order of the rows, so that rankings such as AUROC stay as they are. Two numbers are fitted by few rows,
where a step function (isotonic regression) would follow the noise.

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
    smoothed = torch.where(labels > 0, (positive + 1) / (positive + 2), 1 / (rows - positive + 2))

    def loss(values: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(values[0] * logits + values[1], smoothed)

    slope, offset = _minimised(loss, [1.0, 0.0])
    return _sound(slope, offset)


def calibrate_classes(probability: Values, target: NDArray[np.int64]) -> Calibration | str:
    """One temperature from probabilities [n, C] and classes [n], -1: unknown; or why none."""
    known = target >= 0
    logs = torch.from_numpy(probability[known]).clamp(min=1e-12).log()
    classes = torch.from_numpy(target[known])
    if len(classes) < FEWEST_ROWS:
        return f"{len(classes)} validation rows are too few to calibrate"
    (slope,) = _minimised(lambda values: F.cross_entropy(values[0] * logs, classes), [1.0])
    return _sound(slope, 0.0)


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


def _sound(slope: float, offset: float) -> Calibration | str:
    if not (np.isfinite([slope, offset]).all() and slope > 0):
        return "the network does not rank the validation rows better than chance, so there is nothing to calibrate"
    return Calibration(slope, offset)


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
