"""A run: a recipe trained with a seed, kept in a folder or in memory.

from ckgconv import predict_smiles, recipe, train

run = train(recipe("zinc-demo"), seed=0)
print(run.record.best, run.evaluate("test"))
print(predict_smiles(run, ["CCO", "c1ccccc1"]).values)
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from lightning.fabric import Fabric
from torch import Tensor

from ckgconv.backends import accelerate
from ckgconv.checks import InputError, require
from ckgconv.data import PackedDataset
from ckgconv.engine import checkpoint
from ckgconv.engine.check import check_run
from ckgconv.engine.epoch import evaluate, first_sample, train_epoch
from ckgconv.engine.learner import Learner
from ckgconv.engine.machine import peak_memory_mb, reset_peak_memory
from ckgconv.engine.optim import optimizer
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.record import Best, Epoch, Record, new_record, write_record
from ckgconv.engine.resume import (
    CheckpointBudget,
    check_folder,
    restore,
    save_best,
    save_checkpoint,
    saved_record,
    saved_scale,
)
from ckgconv.engine.run_data import GivenData, check_data, no_data, opened_data, training_data
from ckgconv.engine.setup import make_fabric, seed_epoch
from ckgconv.engine.tensorboard import TensorBoard
from ckgconv.engine.watcher import Silence, Watcher
from ckgconv.engine.window import fits
from ckgconv.files import write_text
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.models import build_model
from ckgconv.recipe import Recipe
from ckgconv.recipes import recipe as recipe_of
from ckgconv.recipes import to_json
from ckgconv.tasks.metrics import better
from ckgconv.tasks.scaling import TargetScale, fitted, unscaled

LARGEST_SEED = 2**31 - 1


@dataclass
class Run:
    """A network with its recipe, data and record; `folder` is None for a run in memory."""

    recipe: Recipe
    learner: Learner
    record: Record
    folder: Path | None
    best_weights: dict[str, Tensor]

    @property
    def model(self) -> GraphModel:
        return self.learner.model

    @property
    def writes(self) -> bool:
        """Whether this process writes files: the first one does, where the run has a folder."""
        return self.folder is not None and self.learner.fabric.is_global_zero

    def evaluate(self, split: str = "test") -> float:
        """The recipe's metric on "train", "val" or "test", with the weights of the best validation epoch."""
        self._check_data()
        return evaluate(self.learner, split)

    def _check_data(self) -> None:
        if self.learner.data.num_graphs:
            return
        given = self.record.data is not None and self.record.data.given
        reason = "was trained on data given in Python" if given else "was opened without its data"
        raise InputError(f"{self.folder} {reason}: evaluate it in Python, opened with open_run(folder, data=…).")


def train(
    recipe: Recipe | str,
    seed: int = 0,
    data: GivenData = None,
    folder: Path | str | None = None,
    resume: bool = False,
    device: str = "auto",
    precision: str = "32",
    watcher: Watcher | None = None,
) -> Run:
    """Train a recipe, and return the network of its best validation epoch.

    Args:
        recipe: a recipe, or the name of one.
        seed: of the initial weights, the order of the graphs and dropout.
        data: a data set in place of the recipe's own (see `ckgconv.data.from_pyg_splits`), or the folder in which the
            packed file of the recipe's own is looked for, by default $CKGCONV_DATA.
        folder: where the run is kept; None keeps it in memory.
        resume: continue the run in `folder`; the result is that of an uninterrupted one.
        device: "auto", "cpu" or "cuda"; precision: "32", "tf32", "bf16" or "64".
        watcher: called at every step and epoch.
    """
    watcher = watcher or Silence()
    recipe = recipe_of(recipe) if isinstance(recipe, str) else recipe
    folder = None if folder is None else Path(folder)
    _check_settings(recipe, seed)
    check_folder(folder, recipe, seed, precision, resume)
    fabric = make_fabric(device, precision)
    saved = saved_record(folder) if resume and folder is not None else None
    graphs, identity = training_data(recipe, data, watcher, folder, None if saved is None else saved.data)
    check_data(graphs, recipe, fabric.world_size)
    reset_peak_memory(fabric.device)
    torch.manual_seed(seed)
    learner = make_learner(fabric, build_model(recipe.model), graphs, recipe)
    _try_one_graph(learner)
    parameters = sum(parameter.numel() for parameter in learner.model.parameters())
    run = Run(recipe, learner, new_record(recipe, seed, parameters, fabric.device, precision, identity), folder, {})
    first_epoch = restore(run, watcher) if resume and folder is not None and folder.exists() else 0
    if folder is not None and run.writes:
        write_text(folder / "recipe.json", to_json(recipe))
    _run_epochs(run, first_epoch, watcher)
    _finish(run)
    return run


def make_learner(fabric: Fabric, model: GraphModel, data: PackedDataset, recipe: Recipe) -> Learner:
    """Model, optimiser and data on the device of `fabric`."""
    model = accelerate(model, fabric.device)
    wrapped, prepared_optimizer = fabric.setup(model, optimizer(model, recipe.training))
    scale = unscaled()
    if recipe.training.scale_targets and data.y is not None and len(data.train):
        scale = fitted(data.y[data.target_rows("train")])
    scale = TargetScale(scale.mean.to(model.dtype), scale.spread.to(model.dtype)).to(fabric.device)
    data = data.to(fabric.device) if fits(data, fabric.device) else data
    return Learner(fabric, model, wrapped, prepared_optimizer, data, scale, recipe.training)


def open_run(folder: Path | str, device: str = "auto", precision: str | None = None, data: GivenData = None) -> Run:
    """The best network of a finished or interrupted run, with the data set it was trained on.

    A data set that was given in Python is not kept with the run: give it again as `data` to evaluate; predictions do
    without. Otherwise `data` is the folder of packed files, as in `train`. Other data is refused.
    """
    return _opened(
        Path(folder), device, precision, lambda recipe, record: opened_data(Path(folder), recipe, data, record.data)
    )


def open_network(folder: Path | str, device: str = "auto", precision: str | None = None) -> Run:
    """As `open_run` without the data set: enough to predict."""
    return _opened(Path(folder), device, precision, lambda recipe, record: no_data())


def _opened(
    folder: Path, device: str, precision: str | None, data_of: Callable[[Recipe, Record], PackedDataset]
) -> Run:
    require(folder.is_dir(), f"{folder} is not a folder: give the folder of a run.")
    records_only = "it holds a record but no weights" if (folder / "record.json").exists() else "it is no run"
    require((folder / "recipe.json").exists(), f"{folder} has no recipe.json, {records_only}: give a run's folder.")
    recipe = read_recipe(folder / "recipe.json")
    try:
        weights, state = checkpoint.load(folder / "best")
    except InputError as error:
        resume = f"'ckgconv train {folder / 'recipe.json'} --resume'"
        raise InputError(f"{error} Write it again with {resume}.") from error
    record = Record.from_json(state["record"], str(folder / "best.json"))
    fabric = make_fabric(device, precision or record.precision)
    learner = make_learner(fabric, build_model(recipe.model), data_of(recipe, record), recipe)
    try:
        learner.model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(f"The weights in {folder} are not those of its recipe.json: restore either file.") from error
    learner.scale = saved_scale(state, learner)
    return Run(recipe, learner, record, folder, weights)


def _check_settings(recipe: Recipe, seed: int) -> None:
    check_run(recipe)
    require(0 <= seed <= LARGEST_SEED, f"The seed is {seed}: give a number from 0 to {LARGEST_SEED}.")


def _try_one_graph(learner: Learner) -> None:
    """Refuse what the model cannot read before anything is written: attributes, coordinates, support."""
    first_sample(learner)


def _warn_of_warm_up(run: Run, watcher: Watcher) -> None:
    training = run.recipe.training
    if 1 < training.epochs <= training.warmup_epochs:
        watcher.warn(
            f"training.warmup_epochs is {training.warmup_epochs} and training.epochs {training.epochs}: the learning "
            f"rate never leaves its warm-up, and next to nothing is learned."
        )


def _run_epochs(run: Run, first_epoch: int, watcher: Watcher) -> None:
    epochs = run.recipe.training.epochs
    board = TensorBoard(run.folder, first_epoch) if run.folder is not None and run.writes else None
    _warn_of_warm_up(run, watcher)
    watcher.start(run, first_epoch)
    earlier = run.record.wall_s  # seconds before the run was resumed
    start, budget = time.perf_counter(), CheckpointBudget()
    for number in range(first_epoch, epochs):
        if _out_of_patience(run):
            break
        epoch = _run_epoch(run, number, watcher)
        run.record.wall_s = round(earlier + time.perf_counter() - start, 3)
        run.record.peak_memory_mb = peak_memory_mb(run.learner.fabric.device)
        if run.writes and (number == epochs - 1 or budget.allows()):
            with budget:
                save_checkpoint(run, number)
        if board is not None:
            board.add(epoch)
        watcher.epoch(epoch)
    if board is not None:
        board.close()


def _run_epoch(run: Run, number: int, watcher: Watcher) -> Epoch:
    """Train and validate once; keep the weights if the validation metric is the best so far."""
    record = run.record
    seed_epoch(record.seed, number)
    trained = train_epoch(run.learner, number, watcher.step)
    trained["seconds"] = round(trained["seconds"], 3)
    epoch = Epoch(**trained, val=evaluate(run.learner, "val"))
    record.epochs.append(epoch)
    if better(record.metric, epoch.val, None if record.best is None else record.best.val):
        record.best = Best(number, epoch.val)
        run.best_weights = {name: value.detach().clone() for name, value in run.model.state_dict().items()}
    return epoch


def _finish(run: Run) -> None:
    """Load the best weights, test them once, and write the result."""
    run.model.load_state_dict(run.best_weights)
    best = run.record.best
    assert best is not None
    if best.test is None and len(run.learner.data.target_rows("test")):
        run.record.best = replace(best, test=run.evaluate("test"))
    if run.folder is not None and run.writes:
        save_best(run)
        write_record(run.folder, run.record)
    run.learner.fabric.barrier()  # a process that exits early would break the connections of the others


def _out_of_patience(run: Run) -> bool:
    patience, epochs, best = run.recipe.training.patience, run.record.epochs, run.record.best
    return patience is not None and best is not None and epochs[-1].epoch - best.epoch >= patience
