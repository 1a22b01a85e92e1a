"""The weights of a run besides those of its best epoch: the last ones, and the mean over the last epochs.

    m = 1/n Σ_e θ_e        over the last n = ⌊E/4⌋ of E epochs

θ_e are the weights and running statistics that are validated after epoch e. Neither ending chooses an epoch or changes
the training. Their metrics are reported next to those of the best epoch, which a noisy minimum has picked.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ckgconv.engine.epoch import evaluate
from ckgconv.engine.further_metrics import evaluate_metrics
from ckgconv.engine.record import Ending

if TYPE_CHECKING:
    from ckgconv.engine.run import Run

Weights = dict[str, Tensor]
SHARE = 4  # the mean is that of the last E/4 epochs


class EpochMean:
    """The mean of the weights over the last epochs of a run of E.

    Args:
        epochs: E; a run of fewer than four has none.
    """

    def __init__(self, epochs: int) -> None:
        self.first: float = epochs - epochs // SHARE  # the first epoch that counts, from 0
        self.count = 0
        self.values: Weights = {}

    @torch.no_grad()
    def add(self, epoch: int, weights: Mapping[str, Tensor]) -> None:
        """After an epoch; of whole numbers, such as counters, the last values are kept."""
        if epoch < self.first:
            return
        self.count += 1
        if not self.values:
            self.values = {name: value.detach().clone() for name, value in weights.items()}
            return
        averaged = [name for name, value in weights.items() if value.is_floating_point()]
        torch._foreach_lerp_(
            [self.values[name] for name in averaged], [weights[name] for name in averaged], 1 / self.count
        )
        for name in weights.keys() - set(averaged):
            self.values[name].copy_(weights[name])

    def load(self, values: Weights, epochs: int) -> None:
        """Take the mean of a checkpoint after so many epochs; checkpoints of earlier versions have none."""
        self.values = values
        self.count = max(0, epochs - int(self.first))
        if self.count and not values:
            self.first = math.inf


def keep_endings(run: "Run") -> None:
    """After the last epoch, keep the weights that the run ends with, and validate them."""
    if not run.record.ended:
        return
    with run.learner.averaged():
        last = {name: value.detach().clone() for name, value in run.model.state_dict().items()}
    run.endings = {"last": last} | ({"averaged": run.mean.values} if run.mean.values else {})
    validate_endings(run)


def validate_endings(run: "Run") -> None:
    """Record those validation metrics of the endings that are not recorded yet."""
    record, epochs = run.record, run.recipe.training.epochs
    if record.last is None and "last" in run.endings:
        record.last = _with_metrics(run, "last", Ending(1, record.epochs[-1].val), "val")
    if record.averaged is None and "averaged" in run.endings:
        count = len(record.epochs) - (epochs - epochs // SHARE)
        record.averaged = _with_metrics(run, "averaged", Ending(count, _evaluated(run, "averaged", "val")), "val")


def judge_endings(run: "Run") -> None:
    """Record test metrics of the endings; afterwards the model has its best weights again."""
    validate_endings(run)
    for name in run.endings:
        ending: Ending = getattr(run.record, name)
        if ending.test is None:
            tested = replace(ending, test=_evaluated(run, name, "test"))
            setattr(run.record, name, _with_metrics(run, name, tested, "test"))


def _evaluated(run: "Run", name: str, split: str) -> float:
    with _weights(run, name):
        return evaluate(run.learner, split)


def _with_metrics(run: "Run", name: str, ending: Ending, split: str) -> Ending:
    """An ending with the further metrics of a split, where the recipe asks for some."""
    others = run.learner.task.others
    if not others:
        return ending
    with _weights(run, name):
        found = evaluate_metrics(run.learner, split, others)
    return replace(ending, metrics={**(ending.metrics or {}), split: found})


@contextmanager
def _weights(run: "Run", name: str) -> Iterator[None]:
    """The model has the weights of an ending in this context, and its best ones afterwards."""
    run.model.load_state_dict(run.endings[name])
    try:
        yield
    finally:
        run.model.load_state_dict(run.best_weights)
