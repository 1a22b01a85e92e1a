"""Covers `ckgconv.tasks.decided`, `ckgconv.tasks.focal`, `ckgconv.tasks.mse` and `ckgconv.tasks.names`."""

import math

import pytest
import torch
from sklearn import metrics as reference

from ckgconv import InputError
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import Score
from ckgconv.tasks.names import loss_of, metric_of

LABELS = torch.tensor([[1.0], [0.0], [1.0], [0.0], [torch.nan], [1.0]])
LOGITS = torch.tensor([[2.0], [1.0], [-1.0], [-2.0], [9.0], [0.5]])
CLASSES = torch.tensor([0, 1, 2, 2, -1, 1])
CLASS_LOGITS = torch.tensor([[3.0, 0, 0], [0, 2, 1], [0, 0, 1], [2, 0, 1], [9, 9, 9], [0, 1, 0]])


def value(name, prediction, target):
    score = Score(name, prediction.shape[1], torch.device("cpu"))
    score.update(prediction, target)
    return score.compute()


def test_decisions_are_those_of_scikit_learn():
    known = LABELS[:, 0] == LABELS[:, 0]
    true, decided = LABELS[known, 0].int().numpy(), (LOGITS[known, 0] > 0).int().numpy()
    for name, function in {
        "label_accuracy": reference.accuracy_score,
        "label_precision": reference.precision_score,
        "label_recall": reference.recall_score,
        "label_f1": reference.f1_score,
        "label_mcc": reference.matthews_corrcoef,
        "label_balanced_accuracy": reference.balanced_accuracy_score,
    }.items():
        assert value(name, LOGITS, LABELS) == pytest.approx(function(true, decided)), name
    known = CLASSES >= 0
    true, logits = CLASSES[known].numpy(), CLASS_LOGITS[known]
    decided = logits.argmax(1).numpy()
    assert value("f1", CLASS_LOGITS, CLASSES) == pytest.approx(reference.f1_score(true, decided, average="macro"))
    assert value("mcc", CLASS_LOGITS, CLASSES) == pytest.approx(reference.matthews_corrcoef(true, decided))
    ranked = reference.roc_auc_score(true, logits.softmax(1).numpy(), multi_class="ovr")
    assert value("class_auroc", CLASS_LOGITS, CLASSES) == pytest.approx(ranked)
    assert value("mse", LOGITS[:4], LABELS[:4]) == pytest.approx(float((LOGITS[:4] - LABELS[:4]).square().mean()))


@pytest.mark.parametrize("name", ["label_mcc", "label_balanced_accuracy", "label_f1"])
def test_what_one_class_does_not_define_is_nan(name):
    assert math.isnan(value(name, LOGITS, torch.zeros(6, 1)))
    assert value("label_accuracy", LOGITS, torch.zeros(6, 1)) == pytest.approx(1 / 3)
    for each in ("f1", "mcc", "class_auroc"):
        assert math.isnan(value(each, CLASS_LOGITS, torch.zeros(6, dtype=torch.long)))


def test_focal_losses_are_cross_entropies_where_gamma_is_zero():
    for focal, plain, prediction, target in (
        ("focal", "binary", LOGITS, LABELS),
        ("focal_cross_entropy", "cross_entropy", CLASS_LOGITS, CLASSES),
    ):
        whole = LOSSES[plain](prediction, target)
        torch.testing.assert_close(LOSSES[focal](prediction, target, focal_gamma=0.0), whole)
        assert LOSSES[focal](prediction, target, focal_gamma=2.0) < whole
    certain = torch.tensor([[50.0]], requires_grad=True)
    LOSSES["focal"](certain, torch.ones(1, 1), focal_gamma=0.5).backward()
    assert certain.grad.isfinite().all()


def test_names_mean_an_entry_by_the_kind_of_targets():
    assert metric_of("ROC-AUC", ["labels"]) == "auroc"
    assert metric_of("roc", ["classes"]) == "class_auroc"
    assert metric_of("accuracy", ["mixed", "values", "labels"]) == "label_accuracy"
    assert metric_of("sbm_accuracy", ["classes"]) == "sbm_accuracy"
    assert (loss_of("focal", ["classes"]), loss_of("mae", ["values"])) == ("focal_cross_entropy", "l1")
    with pytest.raises(InputError, match="'rmse' is not one for labels: choose among roc_auc"):
        metric_of("rmse", ["labels"])
    with pytest.raises(InputError, match=r"There is no metric 'rsme'.*rmse"):
        metric_of("rsme", ["values"])
