"""The data set of a run: loaded or passed in by the user, and checked: before training, to have targets that the loss
can be trained on; in a saved run, to be the one that was trained on.
"""

import math
import os
from pathlib import Path

import torch

from ckgconv.checks import InputError, check_instance, require
from ckgconv.data import CATALOGUE, PackedDataset, data_folder, find, load
from ckgconv.data.catalogue import reads_table
from ckgconv.data.folds import folded
from ckgconv.data.molecule_table import loaded_table
from ckgconv.data.packed import widened
from ckgconv.data.row_report import RowReport, row_report
from ckgconv.engine.batches import check_sampling
from ckgconv.engine.data_identity import DataIdentity, identity_of
from ckgconv.engine.watcher import Watcher
from ckgconv.recipe import Recipe
from ckgconv.tasks.given import metric_named
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import Score
from ckgconv.tasks.task import Task
from ckgconv.tasks.weights import TargetWeights, fitted_weights

# A data set, or the folder in which the packed file of the recipe's own is looked for; None: the default folder.
GivenData = PackedDataset | Path | str | None


def training_data(
    recipe: Recipe, data: GivenData, watcher: Watcher, folder: Path | None = None, saved: DataIdentity | None = None
) -> tuple[PackedDataset, DataIdentity, RowReport | None]:
    """`data` where it is a data set, otherwise the recipe's own; in a run to resume, what it was trained on.

    The rows of a table are reported.
    """
    given = isinstance(data, PackedDataset)
    require(
        given or saved is None or not saved.given,
        f"{folder} was trained on data given in Python, which no file names: resume it in Python, with "
        f"train(…, data=…, resume=True).",
    )
    report = None
    if not given and reads_table(recipe.data):
        loaded = loaded_table(recipe.data)
        graphs, report = loaded.dataset, row_report(loaded, recipe.data)
        _tell(report, watcher)
    else:
        graphs = _read(recipe, data)
    found = identity_of(graphs, recipe.data.name, given if saved is None else saved.given)
    _check_same(folder, recipe, data, saved, found)
    return graphs, found, report


def opened_data(folder: Path, recipe: Recipe, data: GivenData, saved: DataIdentity | None) -> PackedDataset:
    """What the run in `folder` was trained on; an empty data set where it was given in Python and is not now."""
    if saved is None:  # a run of an earlier version
        return _read(recipe, data)
    if saved.given and not isinstance(data, PackedDataset):
        return no_data()
    graphs = _read(recipe, data)
    _check_same(folder, recipe, data, saved, identity_of(graphs, recipe.data.name, saved.given))
    return graphs


def _read(recipe: Recipe, data: GivenData) -> PackedDataset:
    if isinstance(data, PackedDataset):
        return folded(data.limited(recipe.data.limit), recipe.data)
    if data is not None:
        check_instance("data", data, (str, os.PathLike), "a PackedDataset, or the folder of packed files")
    return load(recipe.data, None if data is None else Path(data))


def _check_same(
    folder: Path | None, recipe: Recipe, data: GivenData, saved: DataIdentity | None, found: DataIdentity
) -> None:
    """Refuse data that is not that of the run in `folder`, naming the file that has changed."""
    if saved is None or found.digest == saved.digest:
        return
    difference = saved.difference(found)
    if isinstance(data, PackedDataset):
        raise InputError(f"The data given is not what {folder} was trained on: {difference}. Give the same data again.")
    raise InputError(
        f"{_source(recipe, data)} is no longer what {folder} was trained on: {difference}. Restore it, or train a new "
        f"run."
    )


def _source(recipe: Recipe, folder: Path | str | None) -> str:
    """The file of a recipe's data set, or its name where it is drawn."""
    name = recipe.data.name
    if name not in CATALOGUE:
        return name
    file = find(name, data_folder(None if folder is None else Path(folder)))
    return f"The data set {name!r}" if file is None else str(file)


def check_data(data: PackedDataset, recipe: Recipe, processes: int, name: str) -> None:
    """Refuse a data set without targets, without training or validation rows, or with fewer graphs than processes."""
    require(data.y is not None, f"The {name} has no targets y: give them, since training needs them.")
    row = "graph" if data.node_split is None else "node"
    for split in ("train", "val"):
        require(len(data.target_rows(split)) > 0, f"The {name} has no {row} in split {split!r}: give at least one.")
    check_rows(data, recipe, name)
    check_targets(data, recipe, name)
    check_known(data, recipe, name)
    check_features(data, recipe, name)
    require(
        data.target_weight is None or not data.node_targets,
        f"The {name} has weights of graphs, but targets of nodes: leave out target_weight.",
    )
    check_sampling(data, recipe, processes)
    _check_statistics(data, recipe, processes)
    if recipe.training.sampling.kind != "none":
        return
    require(
        len(data.train) >= processes,
        f"The {name} has {len(data.train)} training graphs for {processes} processes, and a graph is never divided: "
        f"start fewer processes.",
    )
    size = recipe.training.batch_size
    require(
        size >= processes,
        f"training.batch_size is {size} for {processes} processes, which share it: give at least {processes}.",
    )


def _check_statistics(data: PackedDataset, recipe: Recipe, processes: int) -> None:
    """Refuse steps on one node each: a batch norm divides by the spread of its rows, which is zero then."""
    kernel = getattr(recipe.model, "kernel", None)
    norms = {getattr(recipe.model, "norm", "batch"), None if kernel is None else kernel.norm}
    largest = int(data.node_ptr.diff()[data.train.to(data.node_ptr.device)].max()) if len(data.train) else 2
    require(
        "batch" not in norms or largest > 1 or recipe.training.batch_size // processes > 1,
        f"training.batch_size is {recipe.training.batch_size} and no training graph has two nodes: batch norms need "
        f"several rows, so choose larger batches, or 'layer' for model.norm.",
    )


def check_rows(data: PackedDataset, recipe: Recipe, name: str) -> None:
    """Refuse targets of nodes for a head that predicts graphs, and the reverse."""
    pooling = recipe.model.head.pooling
    if (pooling == "none") == data.node_targets:
        return
    found, wanted = ("node", "'none'") if data.node_targets else ("graph", "'sum' or 'mean'")
    raise InputError(
        f"y of the {name} has a row for each {found}, but model.head.pooling is {pooling!r}: set it to {wanted}."
    )


def check_targets(data: PackedDataset, recipe: Recipe, name: str) -> None:
    """Refuse targets that the recipe's loss cannot be trained on, naming the first that is wrong."""
    outputs = recipe.model.head.outputs
    kind = LOSSES[recipe.training.loss].targets
    assert data.y is not None
    y = data.y if data.y.is_floating_point() else data.y.long()  # an unsigned type has no -1
    if kind == "classes":
        classes = max(outputs, 2)
        require(
            not y.is_floating_point() and y.dim() == 1,
            f"y of the {name} has dtype {y.dtype} and shape {list(y.shape)}, but the loss {recipe.training.loss!r} "
            f"needs one whole number per row: give classes 0 … {classes - 1}, -1 where unknown.",
        )
        wrong = (y < -1) | (y >= classes)
        remedy = f"the model has classes 0 … {classes - 1}: renumber them, or set model.head.outputs"
    else:
        columns = y[0].numel() if len(y) else outputs
        require(
            columns == outputs,
            f"y of the {name} has {columns} values per row, but model.head.outputs is {outputs}: make them equal.",
        )
        known = y == y
        if kind == "labels":
            wrong, remedy = known & (y != 0) & (y != 1) & (y != -1), "labels are 0 or 1, -1 or NaN where unknown"
        else:
            wrong, remedy = known & y.isinf(), "values are finite, NaN where unknown"
    if bool(wrong.any()):
        require(False, f"y of the {name} contains {y[wrong][0].item()}, but {remedy}.")


def check_features(data: PackedDataset, recipe: Recipe, name: str) -> None:
    """Refuse features of graphs other than those that the network reads; what a file has and no one reads may be."""
    found = 0 if data.graph_features is None else data.graph_features.shape[1]
    wanted, asked = recipe.model.graph_features, recipe.data.descriptors != "none" or bool(recipe.data.features)
    require(
        found == wanted or (wanted == 0 and not asked),
        f"The {name} has {found} features of each graph, but model.graph_features is {wanted}: make them equal.",
    )


def check_known(data: PackedDataset, recipe: Recipe, name: str) -> None:
    """Refuse training targets of which none is known."""
    assert data.y is not None
    y = widened(data.y)[data.target_rows("train")]
    known = y.isfinite() if LOSSES[recipe.training.loss].targets in ("values", "mixed") else y >= 0
    sentence = f"The {name} has no known target in split 'train': give at least one."
    require(bool(known.any()), sentence)


def check_metric(data: PackedDataset, recipe: Recipe, name: str) -> None:
    """Refuse validation targets that do not define the recipe's metric, so that no epoch could be chosen by it."""
    assert data.y is not None
    rows, outputs = data.target_rows("val"), recipe.model.head.outputs
    judge = Score(metric_named(recipe.training.metric, recipe.training), outputs, data.y.device)
    judge.collector.sync_on_compute = False  # every process has all rows
    # Not all the same: a correlation with constant predictions is undefined, whatever the targets.
    guesses = torch.linspace(-1, 1, len(rows) * outputs, device=data.y.device).view(len(rows), outputs)
    judge.update(guesses, widened(data.y)[rows])
    require(
        not math.isnan(judge.compute()),
        f"The {name} has targets in split 'val' that do not define the metric "
        f"{recipe.training.metric!r}: they are unknown, or all of one class or value. Choose another metric or split.",
    )


def no_data() -> PackedDataset:
    """A data set without graphs, for a network that only predicts."""
    empty = torch.zeros(0, dtype=torch.int64)
    pointers = torch.zeros(1, dtype=torch.int64)
    return PackedDataset(pointers, pointers, torch.zeros(2, 0), empty, None, None, None, empty, empty, empty)


def weights_of(data: PackedDataset, recipe: Recipe, task: Task) -> TargetWeights:
    """Weights of targets in the loss, as the training split gives them."""
    weight, training = data.target_weight, recipe.training
    require(
        task.loss.weighted or (weight is None and not training.class_balance),
        "The loss given takes no weights of targets: leave out data.weight_column and training.class_balance.",
    )
    if data.y is None or not len(data.train):
        return TargetWeights()
    rows = data.target_rows("train")
    found = fitted_weights(
        task.loss,
        training.class_balance,
        data.y[rows].cpu(),
        None if weight is None else weight[rows].cpu(),
        recipe.model.head.outputs,
    )
    require(weight is None or found.mean > 0, "Every weight in the training split is 0: give some above it.")
    return found


def _tell(report: RowReport, watcher: Watcher) -> None:
    """Say what the rows of a table are; a watcher need not take notes."""
    for sentence in report.warnings():
        watcher.warn(sentence)
    note = getattr(watcher, "note", _nothing)
    for sentence in report.notes():
        note(sentence)


def _nothing(sentence: str) -> None: ...
