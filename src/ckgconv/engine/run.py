"""A run: a recipe trained with a seed, kept in a folder or in memory.

from ckgconv import predict_smiles, recipe, train

run = train(recipe("zinc-demo"), seed=0)
print(run.record.best, run.evaluate("test"))
print(predict_smiles(run, ["CCO", "c1ccccc1"]).values)
"""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

import torch
from lightning.fabric import Fabric

from ckgconv.backends import accelerate
from ckgconv.checks import InputError, check_instance, check_path, require, shown
from ckgconv.data import PackedDataset
from ckgconv.data.row_report import RowReport
from ckgconv.engine.callbacks import Callbacks, watch_steps
from ckgconv.engine.endings import EpochMean, Weights, judge_endings, keep_endings
from ckgconv.engine.epoch import evaluate, first_sample
from ckgconv.engine.further_metrics import add_metrics
from ckgconv.engine.initial_weights import prepare_weights
from ckgconv.engine.learner import Learner
from ckgconv.engine.lock import locked_run
from ckgconv.engine.machine import reset_peak_memory
from ckgconv.engine.norm_statistics import BatchStatistics
from ckgconv.engine.optimizers import optimizer_of
from ckgconv.engine.own_model import OwnModel
from ckgconv.engine.parts import GivenParts, Parts, parts_of
from ckgconv.engine.recipe_checks import check_run
from ckgconv.engine.record import Record, new_record, write_record
from ckgconv.engine.resume import restore, save_best
from ckgconv.engine.run_data import GivenData, check_data, check_metric, training_data, weights_of
from ckgconv.engine.run_folder import check_folder, saved_record
from ckgconv.engine.schedule import make_schedule
from ckgconv.engine.setup import make_fabric, process_rank
from ckgconv.engine.training import train_epochs
from ckgconv.engine.training_memory import check_training_memory
from ckgconv.engine.watcher import Silence, Watcher
from ckgconv.engine.weight_average import WeightAverage
from ckgconv.engine.window import fits
from ckgconv.files import write_text
from ckgconv.nn.graph_model import GraphModel, count_parameters
from ckgconv.pairs.memory import explaining_lack_of_memory
from ckgconv.recipe import Recipe
from ckgconv.recipe.limits import LARGEST_SEED
from ckgconv.recipes import recipe as recipe_of
from ckgconv.recipes import to_json
from ckgconv.tasks.given import scaled_outputs, task_of
from ckgconv.tasks.scaling import TargetScale, fitted, unscaled


@dataclass
class Run:
    """A network with its recipe, data and record; `folder` is None for a run in memory."""

    recipe: Recipe
    learner: Learner
    record: Record
    folder: Path | None
    best_weights: Weights
    mean: EpochMean = field(default_factory=lambda: EpochMean(0))  # of the weights of the last epochs, while it trains
    endings: dict[str, Weights] = field(default_factory=dict)  # "last" and "averaged", once it has ended
    rows: RowReport | None = None  # of a table, while it is trained

    @property
    def model(self) -> GraphModel:
        return self.learner.model

    @property
    def writes(self) -> bool:
        """Whether this process writes files: the first one does, where the run has a folder."""
        return self.folder is not None and self.learner.fabric.is_global_zero

    def evaluate(self, split: str = "test") -> float:
        """The run's metric on "train", "val" or "test"; once it has ended, of the best validation epoch."""
        self.check_data()
        return evaluate(self.learner, split)

    def check_data(self) -> None:
        """Refuse a run that was opened without its data."""
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
    **given: Unpack[GivenParts],
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
        watcher: told of every step and epoch, such as a progress bar.
        given: parts of your own in place of those that the recipe names: model, loss, metric, optimizer, schedule; and
            callbacks; and test=False, which leaves the test split alone. See `Parts`.
    """
    watcher, parts = watcher or Silence(), parts_of(given)
    folder = _folder_of(recipe, folder, watcher)
    recipe = parts.named_in(recipe_of(recipe) if isinstance(recipe, str) else recipe)
    check_run(recipe)
    check_seed(seed)
    with nullcontext() if folder is None or process_rank() > 0 else locked_run(folder):
        check_folder(folder, recipe, seed, precision, resume)
        saved = saved_record(folder).data if resume and folder is not None else None
        fabric = make_fabric(device, precision)
        graphs, identity, rows = training_data(recipe, data, watcher, folder, saved)
        check_data(graphs, recipe, fabric.world_size, identity.title)
        if parts.metric is None:
            check_metric(graphs, recipe, identity.title)
        reset_peak_memory(fabric.device)
        torch.manual_seed(seed)
        model = parts.build_model(recipe)
        prepare_weights(model, recipe.training)
        learner = make_learner(fabric, model, graphs, recipe, parts)
        learner.tell = getattr(watcher, "note", learner.tell)  # a watcher need not have it
        _try_one_graph(learner)
        record = new_record(recipe, seed, count_parameters([learner.model]), fabric.device, precision, identity)
        record = replace(record, metric=learner.task.metric_name)
        run = Run(recipe, learner, record, folder, {}, EpochMean(recipe.training.epochs), rows=rows)
        first_epoch = restore(run, watcher) if resume else 0
        if run.writes:
            _write_beginning(run)
        train_epochs(run, first_epoch, watcher, Callbacks(run, parts.callbacks))
        keep_endings(run)
        run.model.load_state_dict(run.best_weights)
        if parts.test:
            record_test(run)
        else:
            add_metrics(run, ("val",))
            _write_result(run)
    return run


def _write_beginning(run: Run) -> None:
    """What a run is, before its first epoch: the record goes first, since a folder with a recipe can be resumed."""
    assert run.folder is not None
    write_record(run.folder, run.record)
    write_text(run.folder / "recipe.json", to_json(run.recipe))
    if run.rows is not None:
        run.rows.write(run.folder)


def record_test(run: Run) -> None:
    """Test the network of the best epoch and what the run ends with, once, and write the result; opened runs too."""
    best = run.record.best
    assert best is not None
    if best.test is None and len(run.learner.data.target_rows("test")):
        run.record.best = replace(best, test=run.evaluate("test"))
        judge_endings(run)
    add_metrics(run)
    _write_result(run)


def make_learner(
    fabric: Fabric, model: GraphModel, data: PackedDataset, recipe: Recipe, parts: Parts | None = None
) -> Learner:
    """Model, optimiser and data on the device of `fabric`."""
    parts = parts or Parts()
    if getattr(model, "graph_join", None) is not None and data.graph_features is not None and len(data.train):
        assert model.graph_join is not None
        model.graph_join.fit(data.graph_features[data.train.to(data.graph_features.device)].cpu())
    model = accelerate(model, fabric.device)
    own = parts.make_optimizer(model.parameters())
    chosen = optimizer_of(model, recipe.training) if own is None else own
    wrapped, prepared_optimizer = fabric.setup(model, chosen)
    scale = unscaled()
    if recipe.training.scale_targets and data.y is not None and len(data.train):
        scale = fitted(data.y[data.target_rows("train")], scaled_outputs(recipe.training))
    scale = TargetScale(scale.mean.to(model.dtype), scale.spread.to(model.dtype)).to(fabric.device)
    task = task_of(recipe.training, parts.loss, parts.metric)
    weights = weights_of(data, recipe, task).to(fabric.device, model.dtype)
    data = data.to(fabric.device) if fits(data, fabric.device) else data
    return Learner(
        fabric,
        model,
        wrapped,
        prepared_optimizer,
        data,
        scale,
        recipe.training,
        task=task,
        weights=weights,
        average=WeightAverage(model, decay, chosen) if (decay := recipe.training.ema_decay) else None,
        statistics=BatchStatistics(model) if recipe.training.norm_statistics == "median" else None,
        schedule=make_schedule(chosen, recipe.training, parts.schedule, own is not None),
        watched=watch_steps(parts.callbacks),
    )


def _folder_of(recipe: object, folder: Path | str | None, watcher: object) -> Path | None:
    """The folder of a run, where what `train` was called with is of the right types."""
    check_instance("recipe", recipe, (Recipe, str), "a Recipe, or the name of one")
    require(hasattr(watcher, "start"), f"watcher is {shown(watcher)}: give one with the methods of Silence.")
    if folder is None:
        return None
    check_path("folder", folder)
    return Path(folder)


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    whole = isinstance(seed, int) and not isinstance(seed, bool)
    require(
        whole and 0 <= seed <= LARGEST_SEED,  # type: ignore[operator]
        f"The seed is {shown(seed)}: give a number from 0 to {LARGEST_SEED}.",
    )


@explaining_lack_of_memory()
def _try_one_graph(learner: Learner) -> None:
    """Refuse what the model cannot read before anything is written: attributes, coordinates, support."""
    if isinstance(learner.model, OwnModel):
        learner.model.check(learner.batch(learner.data.train[:1]), learner.recipe)
    check_training_memory(learner)
    first_sample(learner)


def _write_result(run: Run) -> None:
    if run.folder is not None and run.writes:
        save_best(run)
        write_record(run.folder, run.record)
    run.learner.fabric.barrier()  # a process that exits early would break the connections of the others
