"""Covers `ckgconv.tasks.rmse`, `ckgconv.tasks.r2`, `ckgconv.tasks.trimmed`, `ckgconv.tasks.ranking` and
`ckgconv.tasks.fit`.
"""

import math

import pytest
import torch
from sklearn_free import average_precision, roc_area

from ckgconv.tasks.metrics import Score, better
from ckgconv.tasks.scaling import fitted, unscaled

CPU = torch.device("cpu")


def score(name, outputs, prediction, target):
    metric = Score(name, outputs, CPU)
    for part, other in zip(prediction.split(3), target.split(3), strict=True):
        metric.update(part, other)
    return metric.compute()


def test_mae_ignores_missing_targets():
    prediction, target = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.0, torch.nan], [torch.nan, 1.0]])
    assert score("mae", 2, prediction, target) == 2.0


def test_sbm_accuracy_is_the_mean_recall_not_accuracy():
    logits = torch.tensor([2.0, 1.0, -1.0, -2.0, -3.0, -1.0, -1.0, 1.0, -4.0, -1.0]).view(-1, 1)
    target = torch.tensor([1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    assert score("sbm_accuracy", 1, logits, target) == pytest.approx((1.0 + 7 / 9) / 2)
    assert score("accuracy", 1, logits, target) == pytest.approx(0.8)
    three = torch.eye(3)[torch.tensor([0, 1, 1, 2, 2, 2])]
    assert score("sbm_accuracy", 3, three, torch.tensor([0, 1, 2, 2, 2, 2])) == pytest.approx((1 + 1 + 0.75) / 3)


@pytest.mark.parametrize(("name", "exact"), [("average_precision", average_precision), ("auroc", roc_area)])
@pytest.mark.parametrize("labels", [1, 4])
def test_ranking_metrics_average_over_labels_and_ignore_missing(name, exact, labels):
    generator = torch.Generator().manual_seed(0)
    prediction = torch.randn(60, labels, generator=generator)
    target = torch.randint(2, (60, labels), generator=generator).float()
    target[::7, 0] = torch.nan
    expected = []
    for column in range(labels):
        known = target[:, column].isfinite()
        expected.append(exact(prediction[known, column], target[known, column]))
    assert score(name, labels, prediction, target) == pytest.approx(sum(expected) / labels, abs=1e-6)


def test_better_knows_the_direction():
    assert better("mae", 1.0, 2.0)
    assert not better("mae", 2.0, 1.0)
    assert better("auroc", 2.0, 1.0)
    assert better("mae", 1.0, None)


@pytest.mark.parametrize("name", ["mae", "r2"])
def test_nan_is_never_better_and_a_number_always_is(name):
    assert not better(name, math.nan, 1.0)
    assert not better(name, math.nan, math.nan)
    assert better(name, 1.0, math.nan)
    assert better(name, math.nan, None)  # the first epoch, which any number replaces


def test_rmse_is_the_root_of_the_mean_square_of_what_is_known():
    prediction, target = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.0, torch.nan], [torch.nan, 1.0]])
    assert score("rmse", 2, prediction, target) == pytest.approx(math.sqrt((1 + 9) / 2))
    assert score("rmse", 1, torch.full((5, 1), 2.0), torch.zeros(5)) == 2


def test_a_trimmed_error_leaves_the_largest_percent_out():
    target = torch.arange(250.0).unsqueeze(1)
    error = torch.full((250, 1), 0.5)
    error[[3, 7]] = torch.tensor([[1000.0], [-2000.0]])  # two of 250 are left out, and 248 remain
    error[9] = 2.98
    assert score("trimmed_mae", 1, target + error, target) == pytest.approx(0.51)
    target[9] = torch.nan
    assert score("trimmed_mae", 1, target + error, target) == pytest.approx(0.5)
    assert score("trimmed_mae", 1, error[:5], torch.zeros(5)) == pytest.approx((4 * 0.5 + 1000) / 5)
    assert math.isnan(score("trimmed_mae", 1, torch.zeros(2, 1), torch.full((2,), torch.nan)))


def test_r2_is_the_mean_over_the_outputs_of_the_variance_explained():
    generator = torch.Generator().manual_seed(0)
    # With a mean this large, a difference of sums of squares would lose all digits.
    target = 1e6 + torch.randn(20, 2, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 5.0])
    prediction = target + torch.randn(20, 2, generator=generator, dtype=torch.float64)
    target[::5, 0] = torch.nan
    expected = []
    for column in range(2):
        known = target[:, column].isfinite()
        y, error = target[known, column], (target - prediction)[known, column]
        expected.append(1 - float(error.square().sum() / (y - y.mean()).square().sum()))
    assert score("r2", 2, prediction, target) == pytest.approx(sum(expected) / 2, rel=1e-9)
    assert score("r2", 1, target[:, 1:], target[:, 1]) == 1
    mean = target[:, 1:].mean().expand(20, 1)
    assert score("r2", 1, mean, target[:, 1]) == pytest.approx(0, abs=1e-12)


def test_r2_is_undefined_without_variance():
    assert math.isnan(score("r2", 1, torch.zeros(1, 1), torch.ones(1)))
    assert math.isnan(score("r2", 1, torch.zeros(4, 1), torch.ones(4)))
    assert math.isnan(score("r2", 1, torch.zeros(3, 1), torch.tensor([1.0, torch.nan, torch.nan])))
    # An output without variance is left out.
    target = torch.tensor([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert score("r2", 2, target, target) == 1


def test_target_scale():
    target = torch.tensor([[1.0, 5.0], [3.0, 5.0], [torch.nan, 5.0]])
    scale = fitted(target)
    assert scale.mean.tolist() == [2.0, 5.0]
    assert scale.spread.tolist() == [1.0, 1.0]
    torch.testing.assert_close(scale.restore(scale.standardise(target)), target, equal_nan=True)
    assert torch.equal(unscaled().restore(target[:2]), target[:2])


@pytest.mark.parametrize("name", ["accuracy", "sbm_accuracy"])
@pytest.mark.parametrize("outputs", [1, 4])
def test_classes_that_do_not_count_are_as_if_left_out(name, outputs):
    prediction, target = torch.randn(30, outputs), torch.randint(max(outputs, 2), (30,))
    counts = torch.rand(30) < 0.4
    counts[:3] = False  # a whole batch
    masked = target.where(counts, -1)
    assert score(name, outputs, prediction, masked) == score(name, outputs, prediction[counts], target[counts])


@pytest.mark.parametrize("name", ["average_precision", "auroc"])
def test_labels_that_define_no_ranking_are_left_out_of_the_mean(name):
    generator = torch.Generator().manual_seed(1)
    prediction = torch.randn(40, 3, generator=generator)
    target = torch.randint(2, (40, 3), generator=generator).float()
    alone = score(name, 1, prediction[:, 1:2], target[:, 1])
    target[:, 0] = 0.0  # no positive
    target[:, 2] = torch.nan  # nothing known
    assert score(name, 3, prediction, target) == pytest.approx(alone)
    assert math.isnan(score(name, 3, prediction, target * torch.tensor([1, torch.nan, 1])))


@pytest.mark.parametrize("name", ["average_precision", "auroc"])
def test_a_single_label_without_positives_is_undefined(name):
    prediction = torch.randn(6, 1)
    assert math.isnan(score(name, 1, prediction, torch.zeros(6)))
    assert math.isnan(score(name, 1, prediction, torch.full((6,), -1.0)))
    ones = score(name, 1, prediction, torch.ones(6))
    assert math.isnan(ones) if name == "auroc" else ones == 1


@pytest.mark.parametrize(("name", "outputs"), [("accuracy", 3), ("sbm_accuracy", 3), ("accuracy", 1), ("mae", 2)])
def test_without_known_targets_every_metric_is_undefined(name, outputs):
    target = torch.full((4, 2), torch.nan) if name == "mae" else torch.full((4,), -1)
    assert math.isnan(score(name, outputs, torch.randn(4, outputs), target))
