"""The data set of a run: read or given, and checked before anything is trained."""

from pathlib import Path

import torch

from ckgconv.checks import require
from ckgconv.data import PackedDataset, load
from ckgconv.data.tables import read_table
from ckgconv.engine.watcher import Watcher
from ckgconv.recipe import Recipe


def training_data(recipe: Recipe, data: PackedDataset | Path | str | None, watcher: Watcher) -> PackedDataset:
    """The data set that was given, or the recipe's own, looked for in the folder that was given."""
    if isinstance(data, PackedDataset):
        return data.limited(recipe.data.limit)
    loaded = load(recipe.data, None if data is None else Path(data))
    _warn_of_dropped_rows(recipe, loaded, watcher)
    return loaded


def check_data(data: PackedDataset, recipe: Recipe, processes: int) -> None:
    """Refuse a data set without targets, without rows in a split, or with fewer graphs than processes."""
    require(data.y is not None, f"The data set {recipe.data.name!r} has no targets y: training needs them.")
    what = "graph" if data.node_split is None else "node"
    for name in ("train", "val"):
        require(len(data.target_rows(name)) > 0, f"The data set {recipe.data.name!r} has no {what} in split {name!r}.")
    require(
        len(data.train) >= processes,
        f"The data set {recipe.data.name!r} has {len(data.train)} training graphs for {processes} processes, and a "
        f"graph is never divided: start fewer processes.",
    )


def no_data() -> PackedDataset:
    """A data set without graphs, for a network that only predicts."""
    empty = torch.zeros(0, dtype=torch.int64)
    pointers = torch.zeros(1, dtype=torch.int64)
    return PackedDataset(pointers, pointers, torch.zeros(2, 0), empty, None, None, None, empty, empty, empty)


def _warn_of_dropped_rows(recipe: Recipe, data: PackedDataset, watcher: Watcher) -> None:
    """A table may have rows without a valid molecule or a known target: they are left out, but not silently."""
    path = Path(recipe.data.name)
    if path.suffix.lower() != ".csv" or recipe.data.limit is not None:
        return
    rows = len(read_table(path).rows)
    if data.num_graphs < rows:
        lost = rows - data.num_graphs
        watcher.warn(f"{lost} of {rows} rows of {path} have no valid SMILES or no target and are left out.")
