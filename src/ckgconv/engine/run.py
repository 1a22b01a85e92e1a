"""A run: a recipe trained with a seed, kept in a folder or in memory.

from ckgconv import predict_smiles, recipe, train

run = train(recipe("zinc-demo"), seed=0)
print(run.record["best"], run.evaluate("test"))
print(predict_smiles(run, ["CCO", "c1ccccc1"]).values)
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from lightning.fabric import Fabric
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.data import PackedDataset, load
from ckgconv.data.tables import read_table
from ckgconv.engine import checkpoint
from ckgconv.engine.check import check_run
from ckgconv.engine.learner import Learner
from ckgconv.engine.loop import evaluate, train_epoch
from ckgconv.engine.optim import optimizer
from ckgconv.engine.record import TensorBoard, forget_memory, new_record, peak_memory_mb, read_record, write_record
from ckgconv.engine.setup import make_fabric, seed_epoch
from ckgconv.engine.window import fits
from ckgconv.files import read_text, write_text
from ckgconv.nn import CKGCN
from ckgconv.nn.models import build_model
from ckgconv.recipe import Recipe
from ckgconv.recipes import from_json, to_json
from ckgconv.recipes import recipe as recipe_of
from ckgconv.tasks.metrics import better
from ckgconv.tasks.scaling import TargetScale, fitted, unscaled

LARGEST_SEED = 2**31 - 1


class Watcher(Protocol):
    """Who is told how a run goes; every method may do nothing."""

    def start(self, run: "Run", first_epoch: int) -> None: ...
    def step(self, graphs: int, loss: float) -> None: ...
    def epoch(self, entry: dict[str, Any]) -> None: ...
    def warn(self, sentence: str) -> None: ...


class Silence:
    """A watcher that says nothing."""

    def start(self, run: "Run", first_epoch: int) -> None: ...
    def step(self, graphs: int, loss: float) -> None: ...
    def epoch(self, entry: dict[str, Any]) -> None: ...
    def warn(self, sentence: str) -> None: ...


@dataclass
class Run:
    """A network with what is needed to use it; `folder` is None for a run in memory."""

    recipe: Recipe
    learner: Learner
    record: dict[str, Any]
    folder: Path | None
    best_weights: dict[str, Tensor]

    @property
    def model(self) -> CKGCN:
        return self.learner.model

    def evaluate(self, split: str = "test") -> float:
        """The recipe's metric on "train", "val" or "test", with the weights of the best validation epoch."""
        return evaluate(self.learner, split)


def train(
    recipe: Recipe | str,
    seed: int = 0,
    data: PackedDataset | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    device: str = "auto",
    precision: str = "32",
    data_folder: Path | None = None,
    watcher: Watcher | None = None,
) -> Run:
    """Train a recipe, and return the network of its best validation epoch.

    Args:
        recipe: what to run, or its name.
        seed: of initial values, order and dropout.
        data: a data set in place of the recipe's own (see `ckgconv.data.from_pyg_splits`).
        folder: where the run is kept; None keeps it in memory.
        resume: continue the run in `folder`; the result is that of an uninterrupted one.
        device: "auto", "cpu" or "cuda"; precision: "32", "tf32", "bf16" or "64".
        data_folder: where packed files are looked for.
        watcher: told of every step and epoch.
    """
    watcher = watcher or Silence()
    recipe = recipe_of(recipe) if isinstance(recipe, str) else recipe
    folder = None if folder is None else Path(folder)
    check_run(recipe)
    require(0 <= seed <= LARGEST_SEED, f"The seed is {seed}: give a number from 0 to {LARGEST_SEED}.")
    check_folder(folder, recipe, seed, precision, resume)
    fabric = make_fabric(device, precision)
    if data is None:
        data = load(recipe.data, data_folder)
        _tell_of_lost_rows(recipe, data, watcher)
    else:
        data = data.limited(recipe.data.limit)
    _check_data(data, recipe, fabric.world_size)
    forget_memory(fabric.device)
    torch.manual_seed(seed)
    learner = make_learner(fabric, build_model(recipe.model), data, recipe)
    parameters = sum(parameter.numel() for parameter in learner.model.parameters())
    record = new_record(recipe, seed, parameters, fabric.device, precision)
    run = Run(recipe, learner, record, folder, {})
    first_epoch = _restore(run, watcher) if resume and folder is not None and folder.exists() else 0
    if folder is not None and fabric.is_global_zero:
        write_text(folder / "recipe.json", to_json(recipe))
    _run_epochs(run, first_epoch, watcher)
    run.model.load_state_dict(run.best_weights)
    best = run.record["best"]
    if best["test"] is None:
        best["test"] = run.evaluate("test") if len(data.target_rows("test")) else None
    if folder is not None and fabric.is_global_zero:
        checkpoint.save(folder / "best", run.best_weights, _state(run))
        write_record(folder, run.record)
    fabric.barrier()  # a process that leaves early takes the connections of the others with it
    return run


def make_learner(fabric: Fabric, model: CKGCN, data: PackedDataset, recipe: Recipe) -> Learner:
    """Model, optimiser and data on the device of `fabric`."""
    steps = optimizer(model.to(fabric.device), recipe.training)
    wrapped, prepared = fabric.setup(model, steps)
    scale = unscaled()
    if recipe.training.scale_targets and data.y is not None and len(data.train):
        scale = fitted(data.y[data.target_rows("train")])
    dtype = next(model.parameters()).dtype
    scale = TargetScale(scale.mean.to(dtype), scale.spread.to(dtype)).to(fabric.device)
    data = data.to(fabric.device) if fits(data, fabric.device) else data
    return Learner(fabric, model, wrapped, prepared, data, scale, recipe.training)


def open_run(folder: Path, device: str = "auto", precision: str | None = None, data_folder: Path | None = None) -> Run:
    """The best network of a finished or interrupted run; its data set is read as well."""
    return _opened(folder, device, precision, lambda recipe: load(recipe.data, data_folder))


def open_network(folder: Path, device: str = "auto", precision: str | None = None) -> Run:
    """The same without the data set: enough to predict."""
    return _opened(folder, device, precision, lambda recipe: _no_data())


def _opened(folder: Path, device: str, precision: str | None, data_of: Any) -> Run:
    folder = Path(folder)
    require(folder.is_dir(), f"{folder} is not a folder: give the folder of a run.")
    require((folder / "recipe.json").exists(), f"{folder} has no recipe.json: give the folder of a run.")
    recipe = read_recipe(folder / "recipe.json")
    weights, state = checkpoint.load(folder / "best")
    fabric = make_fabric(device, precision or state["record"]["precision"])
    learner = make_learner(fabric, build_model(recipe.model), data_of(recipe), recipe)
    try:
        learner.model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(f"The weights in {folder} are not those of its recipe.json: restore either file.") from error
    learner.scale = _scale_of(state, learner)
    return Run(recipe, learner, state["record"], folder, weights)


def _run_epochs(run: Run, first_epoch: int, watcher: Watcher) -> None:
    training, fabric = run.recipe.training, run.learner.fabric
    keeps = run.folder is not None and fabric.is_global_zero
    board = TensorBoard(run.folder, first_epoch) if keeps and run.folder is not None else None
    watcher.start(run, first_epoch)
    before = run.record["wall_s"]
    start, pace = time.perf_counter(), Pace()
    for epoch in range(first_epoch, training.epochs):
        if _out_of_patience(run):
            break
        seed_epoch(run.record["seed"], epoch)
        entry = train_epoch(run.learner, epoch, watcher.step)
        entry["val"] = evaluate(run.learner, "val")
        entry["seconds"] = round(entry["seconds"], 3)
        run.record["epochs"].append(entry)
        improved = better(training.metric, entry["val"], (run.record["best"] or {}).get("val"))
        if improved:
            run.record["best"] = {"epoch": epoch, "val": entry["val"], "test": None}
            run.best_weights = {name: value.detach().clone() for name, value in run.model.state_dict().items()}
        run.record["wall_s"] = round(before + time.perf_counter() - start, 3)
        run.record["peak_memory_mb"] = peak_memory_mb(fabric.device)
        if keeps and (epoch == training.epochs - 1 or pace.due()):
            with pace:
                _keep(run, epoch)
        if board is not None:
            board.add(entry)
        watcher.epoch(entry)
    if board is not None:
        board.close()


class Pace:
    """When to keep a checkpoint: writing them may take this share of the time, since an epoch may be shorter."""

    share = 0.01

    def __init__(self) -> None:
        self.cost = 0.0
        self.mark = time.perf_counter()

    def due(self) -> bool:
        return (time.perf_counter() - self.mark) * self.share >= self.cost

    def __enter__(self) -> None:
        self.mark = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        now = time.perf_counter()
        self.cost, self.mark = now - self.mark, now


def _keep(run: Run, epoch: int) -> None:
    """After an epoch: the best weights, then the checkpoint that refers to them, then the record."""
    assert run.folder is not None
    checkpoint.save(run.folder / "best", run.best_weights, _state(run))
    tensors = checkpoint.training_tensors(run.model, run.learner.optimizer.optimizer)
    tensors |= {f"best.{name}": value for name, value in run.best_weights.items()}
    checkpoint.save_epoch(run.folder / "checkpoints", epoch, tensors, _state(run))
    write_record(run.folder, run.record)


def _restore(run: Run, watcher: Watcher) -> int:
    """Continue from the newest sound checkpoint; returns the next epoch."""
    assert run.folder is not None
    found = checkpoint.load_newest(run.folder / "checkpoints", watcher.warn)
    if found is None:
        watcher.warn(f"{run.folder} has no sound checkpoint: the run starts from its first epoch.")
        return 0
    tensors, state = found
    checkpoint.restore_training(tensors, run.model, run.learner.optimizer.optimizer)
    device = run.learner.fabric.device
    run.best_weights = {
        name.removeprefix("best."): value.to(device) for name, value in tensors.items() if name.startswith("best.")
    }
    run.record = state["record"]
    return int(run.record["epochs"][-1]["epoch"]) + 1


def _state(run: Run) -> dict[str, Any]:
    scale = run.learner.scale
    return {"record": run.record, "scale": {"mean": scale.mean.tolist(), "spread": scale.spread.tolist()}}


def _scale_of(state: dict[str, Any], learner: Learner) -> TargetScale:
    dtype = next(learner.model.parameters()).dtype
    mean, spread = (torch.tensor(state["scale"][name], dtype=dtype) for name in ("mean", "spread"))
    return TargetScale(mean, spread).to(learner.fabric.device)


def _out_of_patience(run: Run) -> bool:
    patience, epochs = run.recipe.training.patience, run.record["epochs"]
    if patience is None or not epochs:
        return False
    return bool(epochs[-1]["epoch"] - run.record["best"]["epoch"] >= patience)


def check_folder(folder: Path | None, recipe: Recipe, seed: int, precision: str, resume: bool) -> None:
    """Refuse a folder that holds something else than the run to start or to resume."""
    if folder is None:
        require(not resume, "resume was asked for a run in memory: name its folder.")
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
    require(read_recipe(saved) == recipe, f"{folder} was trained with another recipe: {remedy}")
    kept = read_settings(folder)
    require(kept.get("seed", seed) == seed, f"{folder} was trained with seed {kept.get('seed')}, not {seed}: {remedy}")
    require(
        kept.get("precision", precision) == precision,
        f"{folder} was trained with precision {kept.get('precision')}, not {precision}: {remedy}",
    )


def read_recipe(path: Path) -> Recipe:
    """The recipe that a run has written."""
    return from_json(read_text(path, "give a recipe.json that a run has written."), str(path))


def named_or_saved(what: str) -> Recipe:
    """The recipe of a name or of a recipe.json."""
    return read_recipe(Path(what)) if Path(what).suffix == ".json" else recipe_of(what)


def read_settings(folder: Path) -> dict[str, Any]:
    """Seed and precision of the run in a folder; empty where its record was not written yet or is damaged."""
    try:
        record = read_record(folder) or {}
        return {"seed": int(record["seed"]), "precision": str(record["precision"])}
    except (ValueError, KeyError, TypeError):
        return {}


def _tell_of_lost_rows(recipe: Recipe, data: PackedDataset, watcher: Watcher) -> None:
    """A table may have rows without a valid molecule or a known target: they are left out, but not silently."""
    path = Path(recipe.data.name)
    if path.suffix.lower() != ".csv" or recipe.data.limit is not None:
        return
    rows = len(read_table(path).rows)
    if data.num_graphs < rows:
        lost = rows - data.num_graphs
        watcher.warn(f"{lost} of {rows} rows of {path} have no valid SMILES or no target and are left out.")


def _check_data(data: PackedDataset, recipe: Recipe, processes: int) -> None:
    require(data.y is not None, f"The data set {recipe.data.name!r} has no targets y: training needs them.")
    what = "graph" if data.node_split is None else "node"
    for name in ("train", "val"):
        require(len(data.target_rows(name)) > 0, f"The data set {recipe.data.name!r} has no {what} in split {name!r}.")
    require(
        len(data.train) >= processes,
        f"The data set {recipe.data.name!r} has {len(data.train)} training graphs for {processes} processes, and a "
        f"graph is never divided: start fewer processes.",
    )


def _no_data() -> PackedDataset:
    empty = torch.zeros(0, dtype=torch.int64)
    pointers = torch.zeros(1, dtype=torch.int64)
    return PackedDataset(pointers, pointers, torch.zeros(2, 0), empty, None, None, None, empty, empty, empty)
