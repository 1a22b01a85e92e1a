"""Interrupted runs: which folder can be resumed, when a checkpoint is written, and how training is restored.

A resumed run ends with the weights of an uninterrupted one, bit for bit. Checkpoints therefore keep NaN and Infinity,
which record.json replaces by null.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.engine import checkpoint
from ckgconv.engine.endings import Weights
from ckgconv.engine.learner import Learner
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.record import Record, read_record, write_record
from ckgconv.engine.watcher import Watcher
from ckgconv.recipe import Recipe
from ckgconv.tasks.scaling import TargetScale

if TYPE_CHECKING:
    from ckgconv.engine.run import Run


MEANS = "means"  # the folder of what `endings.EpochMean` has summed up, a file for each checkpoint


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


def check_folder(folder: Path | None, recipe: Recipe, seed: int, precision: str, resume: bool) -> None:
    """Refuse a folder that is in use, or that does not hold the run to resume."""
    if folder is None:
        require(not resume, "resume is true, but a run in memory cannot be resumed: give its folder.")
        return
    exists = any(folder.iterdir()) if folder.is_dir() else folder.exists()
    require(
        resume or not exists,
        f"{folder} already exists: continue it with --resume, or choose another folder with --out.",
    )
    if not resume or not exists:
        return
    saved = folder / "recipe.json"
    require(saved.exists(), f"{folder} holds no run to resume: start it without --resume.")
    remedy = f"resume it with 'ckgconv train {saved} --resume'."
    kept = read_recipe(saved)
    require(
        kept.given == recipe.given,
        f"{folder} was trained with {_listed(kept.given)} given in Python, not with {_listed(recipe.given)}: give the "
        f"same parts to train(…, resume=True).",
    )
    require(kept == recipe, f"{folder} was trained with another recipe: {remedy}")
    record = read_record(folder)
    if record is None:  # missing or damaged: the checkpoints decide
        return
    require(record.seed == seed, f"{folder} was trained with seed {record.seed}, not {seed}: {remedy}")
    require(
        record.precision == precision,
        f"{folder} was trained with precision {record.precision}, not {precision}: {remedy}",
    )


def _listed(given: tuple[str, ...]) -> str:
    return " and ".join(given) or "nothing"


def saved_record(folder: Path) -> Record | None:
    """The record of a run to resume, as record.json or best.json has it; None before its first checkpoint."""
    record = read_record(folder)
    if record is not None:
        return record
    try:
        _, state = checkpoint.load(folder / "best")
        return Record.from_json(state["record"])
    except (InputError, KeyError):  # missing or damaged
        return None


def save_checkpoint(run: "Run", epoch: int) -> None:
    """After an epoch, write the best weights, the checkpoint, and the record, in this order."""
    assert run.folder is not None
    save_best(run)
    tensors = checkpoint.training_tensors(run.model, run.learner.optimizer.optimizer)
    tensors |= {f"best.{name}": value for name, value in run.best_weights.items()}
    if run.learner.average is not None:
        tensors |= {f"average.{name}": value for name, value in run.learner.average.tensors().items()}
    if run.mean.values:  # before the checkpoint that it belongs to
        checkpoint.save_epoch(run.folder / MEANS, epoch, run.mean.values, {})
    checkpoint.save_epoch(run.folder / "checkpoints", epoch, tensors, state_of(run))
    write_record(run.folder, run.record)


def save_best(run: "Run") -> None:
    """Write best.safetensors and best.json: what predictions need."""
    assert run.folder is not None
    checkpoint.save(run.folder / "best", run.best_weights, state_of(run))


def restore(run: "Run", watcher: Watcher) -> int:
    """Restore the newest sound checkpoint; returns the epoch to continue with."""
    assert run.folder is not None
    found = checkpoint.load_newest(run.folder / "checkpoints", watcher.warn)
    if found is None:
        watcher.warn(f"{run.folder} has no sound checkpoint: the run starts from its first epoch.")
        return 0
    tensors, state = found
    checkpoint.restore_training(tensors, run.model, run.learner.optimizer.optimizer)
    device = run.learner.fabric.device
    run.best_weights = {name: value.to(device) for name, value in _part(tensors, "best.").items()}
    if run.learner.average is not None:
        run.learner.average.load(_part(tensors, "average."))
    # A run of an earlier version has no identity of its data: it gets that of the data just read.
    saved = Record.from_json(state["record"], f"The newest checkpoint in {run.folder}")
    run.record = replace(saved, data=run.record.data)
    mean = {name: value.to(device) for name, value in _saved_mean(run.folder, run.record).items()}
    run.mean.load(mean, run.record.epochs[-1].epoch + 1)
    for epoch in run.record.epochs:
        run.learner.schedule.end(epoch.val)
    _restore_groups(state.get("groups", []), run.learner.optimizer.optimizer)
    return run.record.epochs[-1].epoch + 1


def saved_endings(folder: Path, record: Record, warn: Callable[[str], None]) -> dict[str, Weights]:
    """The weights that an ended run ends with, as its last checkpoint has them; nothing where that is gone."""
    found = checkpoint.load_newest(folder / "checkpoints", warn) if record.ended else None
    if found is None or len(Record.from_json(found[1]["record"]).epochs) != len(record.epochs):
        return {}
    tensors, mean = found[0], _saved_mean(folder, record)
    last = _part(tensors, "model.") | _part(tensors, "average.")
    return {"last": last} | ({"averaged": mean} if mean else {})


def _saved_mean(folder: Path, record: Record) -> Weights:
    """The mean of the weights of the last epochs, as after the last one of the record; nothing where it is gone."""
    try:
        return checkpoint.load(folder / MEANS / f"{record.epochs[-1].epoch:06d}")[0]
    except InputError:
        return {}


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
        state["groups"] = _groups(run.learner.optimizer.optimizer)
    return state


def _groups(optimizer: torch.optim.Optimizer) -> list[dict[str, int | float]]:
    """Numbers of the parameter groups but the learning rate, since some optimisers count or adapt there."""
    return [
        {name: value for name, value in group.items() if name != "lr" and type(value) in (int, float, bool)}
        for group in optimizer.param_groups
    ]


def _restore_groups(groups: list[dict[str, int | float]], optimizer: torch.optim.Optimizer) -> None:
    for group, values in zip(optimizer.param_groups, groups, strict=False):
        group.update(values)


def saved_scale(state: dict[str, Any], learner: Learner) -> TargetScale:
    """The scale of the targets in what `state_of` returned."""
    dtype = learner.model.dtype
    mean, spread = (torch.tensor(state["scale"][name], dtype=dtype) for name in ("mean", "spread"))
    return TargetScale(mean, spread).to(learner.fabric.device)
