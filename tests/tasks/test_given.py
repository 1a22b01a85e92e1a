"""Losses and metrics given as functions: unknown targets are left out, shares of processes add up."""

import math

import pytest
import torch
import torchmetrics
from torch.nn import functional as F

from ckgconv import recipe
from ckgconv.checks import InputError
from ckgconv.tasks.given import OwnMetric, known, task_of
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS, Score

TRAINING = {"values": recipe("zinc").training, "classes": recipe("mnist").training}
TRAINING["labels"] = recipe("peptides-func").training
FUNCTIONS = {"values": F.l1_loss, "classes": F.cross_entropy, "labels": F.binary_cross_entropy_with_logits}


def example(kind, rows=12, outputs=3):
    prediction = torch.randn(rows, outputs, dtype=torch.float64, requires_grad=True)
    if kind == "values":
        target = torch.randn(rows, outputs, dtype=torch.float64)
        target[0, 1] = target[3] = math.nan
    elif kind == "classes":
        target = torch.randint(outputs, (rows,))
        target[[2, 5]] = -1
    else:
        target = torch.randint(2, (rows, outputs)).double()
        target[1, 0], target[4, 2] = -1, math.nan
    return prediction, target


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_shares_of_processes_add_up_to_the_named_loss(kind):
    prediction, target = example(kind)
    task = task_of(TRAINING[kind], loss=FUNCTIONS[kind])
    named = LOSSES[TRAINING[kind].loss](prediction, target)
    torch.testing.assert_close(task.loss(prediction, target), named)
    count = float(known(prediction, target, kind)[1].shape[0])
    shares = [task.loss(prediction[place::3], target[place::3], lambda value: value * 0 + count) for place in range(3)]
    torch.testing.assert_close(sum(shares), named)
    (wanted,) = torch.autograd.grad(named, prediction, retain_graph=True)
    (found,) = torch.autograd.grad(sum(shares), prediction)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_no_known_target_is_a_loss_of_zero(kind):
    prediction, target = example(kind)
    unknown = torch.full_like(target, -1 if kind == "classes" else math.nan)
    loss = task_of(TRAINING[kind], loss=FUNCTIONS[kind]).loss(prediction, unknown)
    (gradient,) = torch.autograd.grad(loss, prediction)
    assert loss == 0
    assert not gradient.any()


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_function_sees_all_known_rows_at_once(kind):
    prediction, target = example(kind)
    calls = []

    def function(*rows):
        calls.append(rows)
        return FUNCTIONS[kind](*rows)

    score = Score(task_of(TRAINING[kind], metric=OwnMetric(function, False)).metric, 3, torch.device("cpu"))
    for part in (slice(0, 5), slice(5, 12)):
        score.update(prediction[part].detach(), target[part])
    assert score.compute() == pytest.approx(float(LOSSES[TRAINING[kind].loss](prediction.detach(), target)))
    assert len(calls) == 1
    torch.testing.assert_close(calls[0], known(prediction.detach(), target, kind))


def test_no_rows_have_no_value():
    score = Score(task_of(TRAINING["values"], metric=OwnMetric(F.l1_loss, False)).metric, 1, torch.device("cpu"))
    score.update(torch.zeros(2, 1), torch.full((2, 1), math.nan))
    assert math.isnan(score.compute())


def test_a_torchmetrics_object_is_left_as_it_was():
    given = torchmetrics.MeanAbsoluteError()
    given.update(torch.ones(1), torch.zeros(1))
    metric = task_of(TRAINING["values"], metric=given).metric
    scores = [Score(metric, 1, torch.device("cpu")) for _ in range(2)]
    for place, score in enumerate(scores):
        score.update(torch.full((2, 1), float(place)), torch.zeros(2, 1))
    assert [score.compute() for score in scores] == [0.0, 1.0]
    assert given.compute() == 1.0
    assert not metric.higher_is_better


def test_a_torchmetrics_object_is_not_given_unknown_classes():
    prediction, target = torch.eye(3)[[0, 1, 2, 1]], torch.tensor([0, -1, 2, 2])
    given = torchmetrics.classification.MulticlassAccuracy(3, average="micro")
    score = Score(task_of(TRAINING["classes"], metric=given).metric, 3, torch.device("cpu"))
    score.update(prediction, target)
    score.update(prediction[:1], torch.tensor([-1]))
    assert score.compute() == pytest.approx(2 / 3)


def test_a_torchmetrics_object_for_other_targets_is_refused():
    given = torchmetrics.classification.MulticlassAUROC(3)
    score = Score(task_of(TRAINING["classes"], metric=given).metric, 3, torch.device("cpu"))
    with pytest.raises(InputError, match="The metric given, MulticlassAUROC, cannot judge classes"):
        score.update(torch.eye(3), torch.tensor([0, 1, 2]))


def test_named_parts_stay():
    task = task_of(TRAINING["classes"])
    assert (task.loss, task.metric, task.metric_name) == (
        LOSSES["cross_entropy"],
        METRICS["accuracy"],
        "accuracy",
    )
