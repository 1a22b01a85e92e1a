"""What a report shows of classes, and of targets of several kinds: names, counts, and how far probabilities hold."""

from types import SimpleNamespace

import numpy as np
import pytest

from ckgconv.report.data_sections import data_section, splits_section
from ckgconv.report.score_sections import summary, uncertainty_section
from ckgconv.report.source import Predicted, Source
from ckgconv.uncertainty.calibration import Calibration
from ckgconv.uncertainty.kept import Uncertainty

CLASSES = ("high", "low", "mid")
ROWS = 30


def source_of_columns(targets, classes, columns, target, metric="accuracy"):
    """A source without a network: probabilities that are right for two thirds of the rows."""
    kind = "mixed" if columns else "classes"
    recipe = SimpleNamespace(
        data=SimpleNamespace(
            name="t.csv", targets=targets, classes=classes, folds=None, split="column", split_column="Set", split_seed=0
        )
    )
    data = SimpleNamespace(node_ptr=np.arange(3))
    loss = SimpleNamespace(targets=kind, columns=columns)
    outputs = target.shape[1] if columns else len(CLASSES)
    run = SimpleNamespace(
        recipe=recipe,
        model=SimpleNamespace(outputs=outputs),
        learner=SimpleNamespace(task=SimpleNamespace(loss=loss), data=data),
        record=SimpleNamespace(metric=metric, test=0.5),
    )
    values = np.full((ROWS, outputs), 0.2)
    values[:, 0] = 0.6
    return Source([run], None, {"test": Predicted(np.arange(ROWS), values, None, target)})


@pytest.fixture
def classes():
    target = np.repeat([0.0, 0.0, 2.0], ROWS // 3)[:, None]
    target[-1] = np.nan
    return source_of_columns(("kind",), (CLASSES,), (), target)


@pytest.fixture
def mixed():
    columns = (
        SimpleNamespace(start=0, outputs=1, targets="values"),
        SimpleNamespace(start=1, outputs=1, targets="labels"),
    )
    target = np.stack([np.arange(ROWS) / 7, np.arange(ROWS) % 2], axis=1)
    return source_of_columns(("y", "active"), ((), ()), columns, target, "mixed_score")


def test_classes_are_counted_by_name(classes):
    text = data_section(classes)
    assert "high: 20, mid: 9" in text
    assert "<td>kind</td>" in text


def test_labels_are_counted_beside_values(mixed):
    text = data_section(mixed)
    assert "Distribution of y" in text
    assert "<td>active</td><td>0: 15, 1: 15</td>" in text


def test_the_column_of_a_split_is_named(classes):
    assert "Split: column &#x27;Set&#x27;." in splits_section(classes)


def test_the_score_of_several_kinds_is_explained(mixed, monkeypatch):
    monkeypatch.setattr("ckgconv.report.score_sections.baseline_of", lambda source: None)
    assert "mixed_score (the mean over targets of R², AUROC, and mean recall of classes) is 0.5" in summary(mixed)


def test_classes_have_a_reliability_diagram(classes, monkeypatch):
    kept = Uncertainty(1, ("a", "b", "c"), (), (Calibration(2.0, 0.0),), (), None)
    calibrated = np.tile([0.8, 0.1, 0.1], (ROWS, 1))
    predictor = SimpleNamespace(calibrated=lambda values: calibrated, interval=lambda *found: (None, None), notes=())
    monkeypatch.setattr("ckgconv.report.score_sections.Predictor", lambda *given: predictor)
    classes.runs[0].learner.task.loss.targets = "classes"
    text = uncertainty_section(Source(classes.runs, None, classes.splits, None, kept))
    # Bins of 6, 6, 6, 6 and 5 rows, of which 6, 6, 6, 2 and 0 are right: (18 · 0.4 + 6 · 0.267 + 5 · 0.6) / 29 = 0.407.
    assert "its probability misses how often it is right by 0.407 as trained and 0.359 calibrated" in text
