"""Baselines without a network: predict the mean of the training targets, or their most frequent class."""

import torch
from torch import Tensor

from ckgconv.data import PackedDataset
from ckgconv.engine.run import Run
from ckgconv.tasks.metrics import METRICS, Score
from ckgconv.tasks.scaling import fitted


def mean_predictor(run: Run) -> float | None:
    """The test metric of the mean, in the units of the data; None where targets are not values or none are tested."""
    if METRICS[run.record.metric].targets != "values":
        return None
    splits = _targets(run.learner.data)
    if splits is None:
        return None
    train, test = splits
    target = test.reshape(len(test), -1).double()
    mean = fitted(train).mean.double().to(target.device)
    return _score(run, mean.expand_as(target), target)


def majority_predictor(run: Run) -> float | None:
    """The test metric of the most frequent class; None where targets are not classes or none are tested."""
    splits = _targets(run.learner.data)
    if METRICS[run.record.metric].targets != "classes" or splits is None:
        return None
    train, test = splits
    classes = max(run.model.outputs, 2)
    majority = torch.bincount(train[train >= 0].long(), minlength=classes).argmax()
    logits = torch.nn.functional.one_hot(majority, classes).float()
    # One output is the logit of class 1.
    logits = logits if run.model.outputs > 1 else logits[1:] - 0.5
    return _score(run, logits.expand(len(test), -1), test.long())


def _targets(data: PackedDataset) -> tuple[Tensor, Tensor] | None:
    """Training and test targets; None without test targets."""
    if data.y is None or not len(data.target_rows("test")):
        return None
    return data.y[data.target_rows("train")], data.y[data.target_rows("test")]


def _score(run: Run, prediction: Tensor, target: Tensor) -> float:
    score = Score(run.record.metric, run.model.outputs, torch.device(target.device))
    score.collector.distributed_available_fn = lambda: False  # each process has all rows
    score.update(prediction, target)
    return score.compute()
