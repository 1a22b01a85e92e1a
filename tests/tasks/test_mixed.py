import math

import pytest
import torch

from ckgconv import InputError
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.fit import check_task
from ckgconv.tasks.given import metric_named, scaled_outputs, task_of
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import Score
from ckgconv.tasks.scaling import fitted
from ckgconv.tasks.task import one_process
from ckgconv.tasks.weights import fitted_weights

TRAINING = TrainingRecipe(
    "mixed",
    "mixed_score",
    epochs=1,
    warmup_epochs=0,
    batch_size=2,
    metrics=("rmse", "auroc", "accuracy"),
    mixed=("mse", "binary", "cross_entropy"),
    mixed_outputs=(1, 1, 3),
)
NAN = math.nan
TARGET = torch.tensor([[1.0, 1, 1, 0, 0], [2, 0, 0, 1, 0], [NAN, 1, NAN, NAN, NAN], [4, NAN, 0, 0, 1]])


def test_the_loss_is_the_mean_of_the_columns():
    prediction = torch.zeros(4, 5, requires_grad=True)
    loss = task_of(TRAINING).loss.of(TRAINING)(prediction, TARGET, one_process)
    # Nothing known: (1 + 4 + 16)/3 of the values, and 1 of labels and classes.
    assert loss.item() == pytest.approx((7 + 1 + 1) / 3)
    loss.backward()
    assert prediction.grad.isfinite().all()
    assert (prediction.grad[2] != 0).tolist() == [False, True, False, False, False]
    doubled = task_of(TRAINING).loss.of(TRAINING)(prediction, TARGET, one_process, torch.full((4,), 2.0))
    assert doubled.item() == pytest.approx(2 * loss.item())


def test_values_and_probabilities_are_seen():
    loss = task_of(TRAINING).loss
    outcome, classes = loss.outcome(torch.tensor([[3.0, 0.0, 1.0, 1.0, 1.0]]))
    assert classes is None
    assert outcome[0].tolist() == pytest.approx([3, 0.5, 1 / 3, 1 / 3, 1 / 3])
    again, _ = loss.outcome(loss.prediction_of(outcome))
    torch.testing.assert_close(again, outcome)


def test_metrics_judge_the_columns_of_their_kind():
    prediction = torch.tensor([[1.0, 2, 5, 0, 0], [2, -1, 0, 5, 0], [9, 3, 0, 0, 5], [7, 0, 0, 5, 0]])

    def of(name):
        score = Score(metric_named(name, TRAINING), 5, torch.device("cpu"))
        score.update(prediction[:2], TARGET[:2])
        score.update(prediction[2:], TARGET[2:])
        return score.compute()

    assert of("rmse") == pytest.approx(math.sqrt(3))
    assert of("auroc") == 1
    assert of("accuracy") == pytest.approx(2 / 3)
    variance = sum((each - 7 / 3) ** 2 for each in (1, 2, 4))
    assert of("mixed_score") == pytest.approx((1 - 9 / variance + 1 + 2 / 3) / 3)
    assert set(task_of(TRAINING).others) == {"rmse", "auroc", "accuracy"}


def test_only_values_are_standardised_and_only_classes_balanced():
    scale = fitted(TARGET, scaled_outputs(TRAINING))
    assert scale.mean.tolist() == pytest.approx([7 / 3, 0, 0, 0, 0])
    assert scale.spread[1:].tolist() == [1, 1, 1, 1]
    balance = fitted_weights(task_of(TRAINING).loss, True, TARGET, None, 5).balance
    assert balance[:, 0].tolist() == [1, 1]
    assert balance[:, 1].tolist() == pytest.approx([1.5, 0.75])
    assert balance[1, 2:].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mixed_outputs": (1, 1)}, "3 losses and training.mixed_outputs 2"),
        ({"mixed": ("mse", "binary", "nothing")}, "names the loss 'nothing'"),
        ({"mixed_outputs": (1, 1, 1)}, "1 outputs for a column of classes"),
        ({"mixed": ("mse", "mse", "cross_entropy"), "metrics": ("auroc",)}, "'auroc', but a network"),
        ({"loss": "l1", "metric": "mae", "metrics": (), "class_balance": True}, "no classes to balance"),
    ],
)
def test_columns_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        check_task(TrainingRecipe(**{**vars(TRAINING), **changes}))


def test_without_a_recipe_there_are_no_columns():
    with pytest.raises(InputError, match="depends on the columns of a recipe"):
        LOSSES["mixed"](torch.zeros(1, 1), torch.zeros(1, 1))
