"""The data set of a run: loaded or passed in by the user, and checked before training."""

from pathlib import Path

import torch

from ckgconv.checks import require
from ckgconv.data import PackedDataset, load
from ckgconv.data.tables import read_table
from ckgconv.engine.batches import check_sampling
from ckgconv.engine.watcher import Watcher
from ckgconv.recipe import Recipe
from ckgconv.tasks.losses import LOSSES


def training_data(recipe: Recipe, data: PackedDataset | Path | str | None, watcher: Watcher) -> PackedDataset:
    """`data` where it is a data set; otherwise the recipe's own, with `data` as the data folder."""
    if isinstance(data, PackedDataset):
        return data.limited(recipe.data.limit)
    loaded = load(recipe.data, None if data is None else Path(data))
    _warn_of_dropped_rows(recipe, loaded, watcher)
    return loaded


def check_data(data: PackedDataset, recipe: Recipe, processes: int) -> None:
    """Refuse a data set without targets, without training or validation rows, or with fewer graphs than processes."""
    name = f"The data set {recipe.data.name!r}"
    require(data.y is not None, f"{name} has no targets y: give them, since training needs them.")
    row = "graph" if data.node_split is None else "node"
    for split in ("train", "val"):
        require(len(data.target_rows(split)) > 0, f"{name} has no {row} in split {split!r}: give at least one.")
    check_targets(data, recipe)
    check_sampling(data, recipe, processes)
    require(
        recipe.training.sampling.kind != "none" or len(data.train) >= processes,
        f"{name} has {len(data.train)} training graphs for {processes} processes, and a graph is never divided: "
        f"start fewer processes.",
    )


def check_targets(data: PackedDataset, recipe: Recipe) -> None:
    """Refuse targets that the recipe's loss cannot be trained on, naming the first that is wrong."""
    name, outputs = f"y of the data set {recipe.data.name!r}", recipe.model.head.outputs
    kind = LOSSES[recipe.training.loss].targets
    assert data.y is not None
    y = data.y if data.y.is_floating_point() else data.y.long()  # an unsigned type has no -1
    if kind == "classes":
        classes = max(outputs, 2)
        require(
            not y.is_floating_point() and y.dim() == 1,
            f"{name} has dtype {y.dtype} and shape {list(y.shape)}, but the loss {recipe.training.loss!r} needs one "
            f"whole number per row: give classes 0 … {classes - 1}, -1 where unknown.",
        )
        wrong = (y < -1) | (y >= classes)
        remedy = f"the model has classes 0 … {classes - 1}: renumber them, or set model.head.outputs"
    else:
        columns = y[0].numel() if len(y) else outputs
        require(
            columns == outputs,
            f"{name} has {columns} values per row, but model.head.outputs is {outputs}: make them equal.",
        )
        known = y == y
        if kind == "labels":
            wrong, remedy = known & (y != 0) & (y != 1) & (y != -1), "labels are 0 or 1, -1 or NaN where unknown"
        else:
            wrong, remedy = known & y.isinf(), "values are finite, NaN where unknown"
    if bool(wrong.any()):
        require(False, f"{name} contains {y[wrong][0].item()}, but {remedy}.")


def no_data() -> PackedDataset:
    """A data set without graphs, for a network that only predicts."""
    empty = torch.zeros(0, dtype=torch.int64)
    pointers = torch.zeros(1, dtype=torch.int64)
    return PackedDataset(pointers, pointers, torch.zeros(2, 0), empty, None, None, None, empty, empty, empty)


def _warn_of_dropped_rows(recipe: Recipe, data: PackedDataset, watcher: Watcher) -> None:
    """Warn where rows of a CSV were left out for want of a valid molecule or a target."""
    path = Path(recipe.data.name)
    if path.suffix.lower() != ".csv" or recipe.data.limit is not None:
        return
    rows = len(read_table(path).rows)
    if data.num_graphs < rows:
        dropped = rows - data.num_graphs
        watcher.warn(f"{dropped} of {rows} rows of {path} have no valid SMILES or no target and are left out.")
