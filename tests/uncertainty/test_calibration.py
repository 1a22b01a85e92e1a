"""Calibrated probabilities."""

import numpy as np
import pytest
from scipy.special import expit

from ckgconv.uncertainty.calibration import (
    Calibration,
    calibrate_classes,
    calibrate_labels,
    calibrated_classes,
    calibrated_labels,
)


def test_overconfident_probabilities_become_what_they_were_drawn_by():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=4000)
    labels = (generator.random(4000) < expit(logits)).astype(float)
    shown = expit(3 * logits + 1)
    found = calibrate_labels(shown, labels)
    assert isinstance(found, Calibration)
    assert found.slope == pytest.approx(1 / 3, rel=0.1)
    calibrated = calibrated_labels(found, shown)
    assert np.abs(calibrated - expit(logits)).mean() < 0.02
    assert (np.argsort(calibrated) == np.argsort(shown)).all()


def test_classes_share_a_temperature():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(2000, 3))
    true = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    target = np.array([generator.choice(3, p=row) for row in true])
    shown = true**4 / (true**4).sum(1, keepdims=True)
    found = calibrate_classes(shown, target)
    assert isinstance(found, Calibration)
    assert found.slope == pytest.approx(0.25, rel=0.15)
    assert np.abs(calibrated_classes(found, shown) - true).mean() < 0.03


def test_certain_probabilities_have_finite_logits():
    found = calibrated_labels(Calibration(0.5, 0.0), np.array([0.0, 1.0, np.nan]))
    assert 0 < found[0] < 1e-5 < 1 - 1e-5 < found[1] < 1
    assert np.isnan(found[2])


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (np.tile([0.0, 1.0], 5), "10 validation rows, 5 of the rarer class, are too few"),
        (np.array([1.0] * 3 + [0.0] * 40), "43 validation rows, 3 of the rarer class, are too few"),
        (np.array([np.nan, -1.0] * 40), "0 validation rows, 0 of the rarer class, are too few"),
    ],
)
def test_too_few_rows_are_said(labels, why):
    assert why in calibrate_labels(np.linspace(0.1, 0.9, len(labels)), labels)
    assert "are too few" in calibrate_classes(np.full((3, 2), 0.5), np.zeros(3, dtype=np.int64))


def test_a_network_that_ranks_the_wrong_way_round_is_not_turned_round():
    shown = np.linspace(0.1, 0.9, 60)
    assert "not rank the validation rows better than chance" in calibrate_labels(shown, (shown < 0.5).astype(float))


def log_loss(probability, target):
    return -np.log(probability[np.arange(len(target)), target].clip(1e-12)).mean()


@pytest.mark.parametrize("rows", [40, 120, 400])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_calibrated_is_never_worse_on_validation(rows, seed):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(rows, 3))
    shown = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    target = np.array([generator.choice(3, p=row) for row in shown])
    found = calibrate_classes(shown, target)
    assert isinstance(found, Calibration)
    assert log_loss(calibrated_classes(found, shown), target) <= log_loss(shown, target) + 1e-12
    label = (target == 0).astype(float)
    of_label = calibrate_labels(shown[:, 0], label)
    assert isinstance(of_label, Calibration)
    both = np.stack([calibrated_labels(of_label, shown[:, 0]), shown[:, 0]], axis=1)
    after, before = (log_loss(np.stack([1 - each, each], axis=1), label.astype(int)) for each in both.T)
    assert after <= before + 1e-12


def test_rows_without_an_error_do_not_make_a_network_certain():
    shown = np.full((30, 3), 0.1) + 0.7 * np.eye(3)[np.arange(30) % 3]
    found = calibrate_classes(shown, np.arange(30) % 3)
    assert isinstance(found, Calibration)
    assert 1 < found.slope < 4
    assert calibrated_classes(found, shown).max() < 0.9999


def test_calibrated_probabilities_are_left_as_they_are():
    shown = np.tile([[0.75, 0.25]], (40, 1))
    assert calibrate_classes(shown, (np.arange(40) % 4 == 0).astype(np.int64)) == Calibration(1.0, 0.0)
    label = (np.arange(80) % 8 < np.where(np.arange(80) % 16 < 8, 2, 6)).astype(float)
    shown = np.where(np.arange(80) % 16 < 8, 0.25, 0.75)
    assert calibrate_labels(shown, label) == Calibration(1.0, 0.0)
