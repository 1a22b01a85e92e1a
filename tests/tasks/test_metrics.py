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


def test_target_scale():
    target = torch.tensor([[1.0, 5.0], [3.0, 5.0], [torch.nan, 5.0]])
    scale = fitted(target)
    assert scale.mean.tolist() == [2.0, 5.0]
    assert scale.spread.tolist() == [1.0, 1.0]
    torch.testing.assert_close(scale.restore(scale.shrink(target)), target, equal_nan=True)
    assert torch.equal(unscaled().restore(target[:2]), target[:2])


@pytest.mark.parametrize("name", ["accuracy", "sbm_accuracy"])
@pytest.mark.parametrize("outputs", [1, 4])
def test_classes_that_do_not_count_are_as_if_left_out(name, outputs):
    prediction, target = torch.randn(30, outputs), torch.randint(max(outputs, 2), (30,))
    counts = torch.rand(30) < 0.4
    counts[:3] = False  # a whole batch
    masked = target.where(counts, -1)
    assert score(name, outputs, prediction, masked) == score(name, outputs, prediction[counts], target[counts])
