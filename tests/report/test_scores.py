"""Scores of predictions, and which rows are worst."""

import numpy as np
import pytest

from ckgconv.report.scores import by_split, errors, of_classes, of_labels, of_values, outputs_of, reliable, shown, word
from ckgconv.report.source import Predicted


def predicted(values, target):
    values, target = np.array(values, dtype=float), np.array(target, dtype=float)
    return Predicted(np.arange(len(values)), values.reshape(len(values), -1), None, target.reshape(len(values), -1))


def test_values():
    found = of_values(predicted([1, 2, 4, 9], [1, 3, 3, np.nan]), 0)
    assert found["mae"] == pytest.approx(2 / 3)
    assert found["rmse"] == pytest.approx((2 / 3) ** 0.5)
    assert found["spearman"] is not None
    assert set(of_values(predicted([1.0], [np.nan]), 0).values()) == {None}
    assert of_values(predicted([1, 1], [2, 2]), 0)["r2"] is None


def test_labels_and_classes():
    found = of_labels(predicted([0.9, 0.2, 0.8, 0.5], [1, 0, 1, np.nan]), 0)
    assert found["auroc"] == 1
    assert found["Brier score"] == pytest.approx((0.01 + 0.04 + 0.04) / 3)
    assert of_labels(predicted([0.9], [1]), 0)["auroc"] is None
    classes = predicted([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.5, 0.4, 0.1]], [0, 1, 0])
    assert of_classes(classes)["accuracy"] == pytest.approx(2 / 3)
    assert of_classes(predicted([[0.5, 0.5]], [np.nan]))["accuracy"] is None
    assert by_split("classes", {"test": classes}, 0) == {"test": of_classes(classes)}
    assert outputs_of("classes", ["a", "b"]) == [0]
    assert outputs_of("labels", ["a", "b"]) == [0, 1]


def test_errors_are_comparable_over_outputs():
    assert errors(predicted([[1.0, 100.0], [3.0, 0.0]], [[0.0, 90.0], [1.0, np.nan]]), "values").shape == (2,)
    assert errors(predicted([0.9, 0.2], [0, np.nan]), "labels").tolist() == pytest.approx([0.9, -1])
    assert errors(predicted([[0.7, 0.3], [0.4, 0.6]], [1, np.nan]), "classes").tolist() == pytest.approx([0.7, -1])
    assert errors(predicted([0.9], [0]), "classes").tolist() == pytest.approx([0.9])


def test_a_calibrated_forecast_has_no_error():
    probability = np.repeat([0.25, 0.75], 20)
    true = np.tile([1, 0, 0, 0], 5).tolist() + np.tile([1, 1, 1, 0], 5).tolist()
    assert reliable(np.array(true, dtype=float), probability).error < 0.08


def test_words():
    assert (shown(0.12345), shown(None), shown(float("nan"))) == ("0.123", "–", "–")
    assert (shown(0.5), shown(1.0), shown(125.0), shown(-12.5)) == ("0.500", "1.00", "125", "-12.5")
    assert (word("mae"), word("accuracy")) == ("MAE", "accuracy")
