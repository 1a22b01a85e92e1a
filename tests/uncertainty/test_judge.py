"""Coverage and calibration on a split that fitted neither."""

import numpy as np
import pytest

from ckgconv.uncertainty import Uncertainty, judge
from ckgconv.uncertainty.calibration import Calibration
from ckgconv.uncertainty.fit import SplitOutcomes
from ckgconv.uncertainty.intervals import Scores


class Several:
    """In place of a run: names and nothing else."""

    def __init__(self, *names):
        self.recipe = self
        self.data, self.model, self.head, self.targets, self.outputs = self, self, self, names, len(names)
        self.classes = ()


def judged(monkeypatch, values, target, **fitted):
    values = np.array(values, dtype=float)
    outcomes = SplitOutcomes(values, None, np.array(target, dtype=float))
    monkeypatch.setattr(judge, "split_outcomes", lambda runs, split: outcomes)
    names = tuple("abc"[: values.shape[1]])
    return judge.judge([Several(*names)], Uncertainty(1, names, **fitted), "test", 0.5)


def test_coverage(monkeypatch):
    scores = (Scores(np.array([1.0, 2.0, 3.0])),)  # ⌈4 · 0.5⌉ = 2: half width 2
    found = judged(monkeypatch, [[0.0], [0.0], [0.0]], [[1.5], [2.5], [np.nan]], scores=scores)
    assert (found.coverage["a"].share, found.coverage["a"].rows, found.coverage["a"].width) == (0.5, 2, 4.0)
    assert found.to_json() == {"coverage": {"a": {"level": 0.5, "share": 0.5, "rows": 2, "width": 4.0}}}


def test_labels_before_and_after(monkeypatch):
    kept = (Calibration(1.0, 0.0), None)
    found = judged(monkeypatch, [[0.9, 0.5], [0.2, 0.5]], [[1, 1], [0, -1]], calibrations=kept, notes=("b: few",))
    assert list(found.calibration) == ["a"]
    sharp = found.calibration["a"]
    assert sharp.log_loss == pytest.approx(-(np.log(0.9) + np.log(0.8)) / 2)
    assert sharp.log_loss_calibrated == pytest.approx(sharp.log_loss)
    assert sharp.brier == pytest.approx((0.01 + 0.04) / 2)
    assert found.notes == ("Not calibrated: b: few.",)
    assert set(found.to_json()) == {"calibration", "notes"}


def test_classes_before_and_after(monkeypatch):
    values = [[0.98, 0.01, 0.01], [0.01, 0.98, 0.01]]
    found = judged(monkeypatch, values, [[0], [2]], calibrations=(Calibration(0.2, 0.0),))
    sharp = found.calibration["classes"]
    assert sharp.log_loss == pytest.approx(-(np.log(0.98) + np.log(0.01)) / 2)
    assert sharp.log_loss_calibrated < sharp.log_loss
    assert sharp.brier_calibrated < sharp.brier
