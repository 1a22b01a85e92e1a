"""Interrupted runs: when a checkpoint is written, and how training is restored from one.

A resumed run ends with the weights of an uninterrupted one, bit for bit. Checkpoints therefore keep NaN and Infinity,
which record.json replaces by null.
"""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.engine import checkpoint
from ckgconv.engine.endings import Weights
from ckgconv.engine.learner import Learner
from ckgconv.engine.record import write_record
from ckgconv.engine.saved_state import State, check_moments, check_tensors, most_bytes
from ckgconv.engine.watcher import Watcher
from ckgconv.tasks.scaling import TargetScale

if TYPE_CHECKING:
    from ckgconv.engine.run import Run


class CheckpointBudget:
    """Limits the share of a run's time spent on writing checkpoints: an epoch may be shorter than writing one takes."""

    share = 0.01

    def __init__(self) -> None:
        self.cost = 0.0  # seconds that the last checkpoint took
        self.since = time.perf_counter()

    def allows(self) -> bool:
        """Whether enough time has passed to write the next checkpoint."""
        return (time.perf_counter() - self.since) * self.share >= self.cost

    def __enter__(self) -> None:
        self.since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        now = time.perf_counter()
        self.cost, self.since = now - self.since, now


def save_checkpoint(run: "Run", epoch: int) -> None:
    """After an epoch, write the best weights, the checkpoint, and the record, in this order."""
    assert run.folder is not None
    save_best(run)
    tensors = checkpoint.training_tensors(run.model, run.learner.optimizer.optimizer)
    tensors |= {f"best.{name}": value for name, value in run.best_weights.items()}
    if run.learner.average is not None:
        tensors |= {f"average.{name}": value for name, value in run.learner.average.tensors().items()}
    tensors |= {f"mean.{name}": value for name, value in run.mean.values.items()}
    checkpoint.save_epoch(run.folder / "checkpoints", epoch, tensors, state_of(run))
    write_record(run.folder, run.record)


def save_best(run: "Run") -> None:
    """Write best.safetensors and best.json: what predictions need."""
    assert run.folder is not None
    require(
        (run.folder / "recipe.json").exists(),
        f"{run.folder} has been moved or emptied during training: start the run again.",
    )
    checkpoint.save(run.folder / "best", run.best_weights, state_of(run))


def restore(run: "Run", watcher: Watcher) -> int:
    """Restore the newest sound checkpoint; returns the epoch to continue with."""
    assert run.folder is not None
    folder, optimizer = run.folder, run.learner.optimizer.optimizer

    def use(tensors: dict[str, Tensor], values: dict[str, Any]) -> State:
        state = State.from_json(values, run.model.outputs, f"The checkpoint in {folder}")
        _check(run, tensors, state)
        checkpoint.restore_training(tensors, run.model, optimizer)
        run.best_weights, mean = (_on_device(run, _part(tensors, part)) for part in ("best.", "mean."))
        run.mean.load(mean, state.record.epochs[-1].epoch + 1)
        if run.learner.average is not None:
            run.learner.average.load(_part(tensors, "average."))
        return state

    state = checkpoint.load_newest(folder / "checkpoints", watcher.warn, use, most_bytes(run.model))
    if state is None:
        watcher.warn(f"{folder} has no sound checkpoint: the run starts from its first epoch.")
        return 0
    if state.record.device != run.record.device:
        watcher.warn(
            f"{folder} was trained on {state.record.device} and goes on on {run.record.device}, where sums are rounded "
            f"in another order: its weights will differ a little from those of an uninterrupted run."
        )
    # A run of an earlier version has no identity of its data: it gets that of the data just read.
    run.record = replace(state.record, data=run.record.data)
    for epoch in run.record.epochs:
        run.learner.schedule.end(epoch.val)
    for group, values in zip(optimizer.param_groups, state.groups, strict=False):
        group.update(values)
    return run.record.epochs[-1].epoch + 1


def saved_endings(run: "Run") -> dict[str, Weights]:
    """The endings of an ended run, from its last checkpoint; empty where that has been deleted."""
    assert run.folder is not None

    def use(tensors: dict[str, Tensor], values: dict[str, Any]) -> dict[str, Weights]:
        state = State.from_json(values, run.model.outputs, f"The checkpoint in {run.folder}")
        _check(run, tensors, state)
        require(len(state.record.epochs) == len(run.record.epochs), f"A checkpoint of {run.folder} is not its last.")
        mean = _part(tensors, "mean.")
        last = _part(tensors, "model.") | _part(tensors, "average.")
        return {"last": last} | ({"averaged": mean} if mean else {})

    if not run.record.ended:
        return {}
    folder = run.folder / "checkpoints"
    return checkpoint.load_newest(folder, lambda sentence: None, use, most_bytes(run.model)) or {}


def _on_device(run: "Run", tensors: dict[str, Tensor]) -> Weights:
    return {name: value.to(run.learner.fabric.device) for name, value in tensors.items()}


def _check(run: "Run", tensors: dict[str, Tensor], state: State) -> None:
    """Refuse a checkpoint that is not one of this run."""
    weights, record, optimizer = run.model.state_dict(), state.record, run.learner.optimizer.optimizer
    check_tensors(_part(tensors, "model."), weights, "the weights")
    check_tensors(_part(tensors, "best."), weights, "the best weights")
    if _part(tensors, "mean."):  # of the last epochs alone
        check_tensors(_part(tensors, "mean."), weights, "the mean weights")
    average = {} if run.learner.average is None else run.learner.average.tensors()
    check_tensors(_part(tensors, "average."), average, "the averaged weights")
    check_moments(_part(tensors, "optimizer."), run.model, optimizer)
    require(
        bool(record.epochs) and [each.epoch for each in record.epochs] == list(range(len(record.epochs))),
        f"A checkpoint of {run.folder} has no list of epochs from the first one on.",
    )
    require(
        record.best is not None and 0 <= record.best.epoch < len(record.epochs),
        f"A checkpoint of {run.folder} names no epoch of its own as the best one.",
    )
    require(record.seed == run.record.seed, f"A checkpoint of {run.folder} is one of seed {record.seed}.")
    numbers = [_numbers(group) for group in optimizer.param_groups]
    known = all(values.keys() <= group.keys() for group, values in zip(numbers, state.groups, strict=False))
    plain = all(type(value) in (int, float, bool) for values in state.groups for value in values.values())
    require(known and plain, f"A checkpoint of {run.folder} has groups that its optimiser does not have.")


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def state_of(run: "Run") -> dict[str, Any]:
    """What a checkpoint stores as JSON."""
    scale = run.learner.scale
    state: dict[str, Any] = {
        "record": run.record.to_json(),
        "scale": {"mean": scale.mean.tolist(), "spread": scale.spread.tolist()},
    }
    if "optimizer" in run.recipe.given:
        state["groups"] = [_numbers(group) for group in run.learner.optimizer.optimizer.param_groups]
    return state


def _numbers(group: dict[str, Any]) -> dict[str, int | float]:
    """Numbers of a parameter group but the learning rate, since some optimisers count or adapt there."""
    return {name: value for name, value in group.items() if name != "lr" and type(value) in (int, float, bool)}


def saved_scale(state: State, learner: Learner) -> TargetScale:
    """The scale of the targets in what `state_of` returned."""
    dtype = learner.model.dtype
    mean, spread = (torch.tensor(values, dtype=dtype) for values in (state.scale.mean, state.scale.spread))
    return TargetScale(mean, spread).to(learner.fabric.device)
