"""Data sets by name: where each is found, and how it is read.

A packed file in the data folder (`--data-dir`, `$CKGCONV_DATA`, or `ckgconv` in the user's cache) has precedence.
Without one, ZINC-12k and the single graphs `cora`, `minesweeper` and `chameleon-directed` are read from the package,
large-sbm and cyclic-sbm are drawn, and every other data set is downloaded from its official source and packed into the
data folder. The working directory is never searched: what lies there may come from anybody. Installed packages add data
sets, which their own functions read.

Of the files in the package, ZINC-12k is from *Benchmarking Graph Neural Networks*, Cora with its public split from
*Planetoid*, and minesweeper and chameleon-directed with their ten splits from *heterophilous-graphs* (Yandex Research);
all are under the MIT licence.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ckgconv.checks import InputError, check_instance, require
from ckgconv.data import sbm
from ckgconv.data.folds import check_folds, folded
from ckgconv.data.molecule_table import load_table
from ckgconv.data.official import download, mutag
from ckgconv.data.packed import PackedDataset, from_arrays, join, load_packed, read_arrays, save_packed
from ckgconv.data.superpixels import NEIGHBOURS, superpixel_edges
from ckgconv.data.tables import READERS, is_table
from ckgconv.files import explaining_file_errors
from ckgconv.recipe import DataRecipe
from ckgconv.recipe.values import check_recipe
from ckgconv.registry import Registry, nearest

EMBEDDED = Path(__file__).parent  # data sets that come with the package
DATA_VARIABLE = "CKGCONV_DATA"


@dataclass(frozen=True)
class Entry:
    """A named data set.

    That of another package needs only a task and `load`, which takes the data folder and returns the data set.
    """

    file: str | None  # name of the packed file in the data folder
    task: str
    generate: Callable[[int], PackedDataset] | None = None  # draws the data set from a seed
    seed: int | None = None  # draw with this seed where the file is missing; None: download
    pixel_scale: float | None = None  # superpixels: divisor of the stored pixel values
    load: Callable[[Path], PackedDataset] | None = None  # reads the data set where the file is missing


OURS: dict[str, Entry] = {
    "zinc": Entry("zinc12k.npz", "graph regression (penalised logP), MAE"),
    "zinc-full": Entry("zinc_full.npz", "graph regression (penalised logP), MAE"),
    "mnist": Entry("mnist_superpixels.npz", "10 digits per graph, accuracy", pixel_scale=1.0),
    "cifar10": Entry("cifar10_superpixels.npz", "10 objects per graph, accuracy", pixel_scale=255.0),
    "pattern": Entry("pattern.npz", "2 classes per node, mean recall", generate=sbm.pattern),
    "cluster": Entry("cluster.npz", "6 classes per node, mean recall", generate=sbm.cluster),
    "large-sbm": Entry("large_sbm.npz", "5 classes per node of one graph, accuracy", generate=sbm.large, seed=0),
    "cyclic-sbm": Entry("cyclic_sbm.npz", "5 classes per node of one directed graph", generate=sbm.cyclic, seed=0),
    "cora": Entry("cora.npz", "7 classes per node of one graph, accuracy"),
    "minesweeper": Entry("minesweeper.npz", "mine or not per node of one graph, AUROC, ten splits"),
    "chameleon-directed": Entry("chameleon_directed.npz", "5 classes per node of one graph, accuracy, ten splits"),
    "mutag": Entry("mutag.npz", "2 classes per graph, accuracy over folds", load=mutag),
    "peptides-func": Entry("peptides_func.npz", "10 labels per graph, average precision"),
    "peptides-struct": Entry("peptides_struct.npz", "11 values per graph, MAE"),
}
CATALOGUE: Registry[Entry] = Registry("data set", "ckgconv.datasets", OURS, Entry)


def data_folder(given: Path | None) -> Path:
    """`given`, else $CKGCONV_DATA, else `ckgconv` in the user's cache ($XDG_CACHE_HOME, or ~/.cache)."""
    if given is not None:
        return given
    chosen = os.environ.get(DATA_VARIABLE)
    if chosen:
        return Path(chosen)
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if cache.is_absolute():  # a relative path is invalid: it would depend on the working directory
        return cache / "ckgconv"
    home = Path(os.path.expanduser("~"))
    require(home.is_absolute(), f"There is no home folder for data: set {DATA_VARIABLE}, or give --data-dir.")
    return home / ".cache" / "ckgconv"


@explaining_file_errors()
def load(recipe: DataRecipe, folder: Path | None = None) -> PackedDataset:
    """The data set of a recipe: a named one, a table, a packed file or a folder of packed files."""
    check_instance("recipe", recipe, DataRecipe, "a DataRecipe, such as DataRecipe('zinc')")
    check_recipe(recipe, "data")
    check_folds(recipe)
    if reads_table(recipe):
        return load_table(recipe)
    return folded(_read(recipe, folder), recipe)


def reads_table(recipe: DataRecipe) -> bool:
    """Whether a recipe's data set is a table of molecules, which must exist."""
    if recipe.name in CATALOGUE or not is_table(recipe.name):
        return False
    require(Path(recipe.name).exists(), f"{recipe.name} does not exist: check the path of the table.")
    return True


def _read(recipe: DataRecipe, folder: Path | None) -> PackedDataset:
    path = Path(recipe.name)
    if recipe.name in CATALOGUE:
        return _named(recipe, data_folder(folder))
    if path.suffix == ".npz":
        return load_packed(path, recipe.split_number).limited(recipe.limit)
    if path.is_dir():
        return _folder(path).limited(recipe.limit)
    hint = nearest(recipe.name, list(CATALOGUE))
    raise InputError(
        f"There is no data set {recipe.name!r}: {hint} Or give a table ({', '.join(READERS)}), a .npz file or a folder "
        f"of those."
    )


def find(name: str, folder: Path) -> Path | None:
    """The packed file of a named data set; None where it is missing."""
    file = CATALOGUE[name].file
    if file is None:
        return None
    return next((place / file for place in (folder, EMBEDDED) if (place / file).exists()), None)


def build(name: str, folder: Path, seed: int | None = None) -> Path:
    """Write the packed file of a named data set: generated from a seed where one is given, downloaded otherwise."""
    entry = CATALOGUE[name]
    if entry.file is None:
        raise InputError(
            f"{name} is read by the package that adds it, not from a packed file: there is nothing to build."
        )
    seed = entry.seed if seed is None else seed
    if seed is not None:
        require(entry.generate is not None, f"{name} is not a synthetic data set: build it without --generate.")
        assert entry.generate is not None
        dataset = entry.generate(seed)
    else:
        embedded = (EMBEDDED / entry.file).exists()
        require(not embedded, f"{name} is part of the package: there is nothing to build.")
        dataset = download(name, folder) if entry.load is None else entry.load(folder)
    save_packed(dataset, folder / entry.file)
    return folder / entry.file


def _named(recipe: DataRecipe, folder: Path) -> PackedDataset:
    entry = CATALOGUE[recipe.name]
    path = find(recipe.name, folder)
    if path is None and entry.load is not None:
        return entry.load(folder).limited(recipe.limit)
    if path is None and entry.generate is not None and entry.seed is not None:
        return entry.generate(entry.seed).limited(recipe.limit)
    if path is None:
        path = _download_or_explain(recipe.name, folder)
    if entry.pixel_scale is None:
        return load_packed(path, recipe.split_number).limited(recipe.limit)
    return _superpixels(path, entry.pixel_scale, recipe.limit)


def _download_or_explain(name: str, folder: Path) -> Path:
    try:
        return build(name, folder)
    except InputError as error:
        if CATALOGUE[name].generate is None:
            raise
        raise InputError(f"{error} Or generate it: ckgconv data build {name} --generate.") from error


def _superpixels(path: Path, scale: float, limit: int | None) -> PackedDataset:
    """Read a superpixel file: scale pixel values to [0, 1], and compute edges where the file has none."""
    arrays = read_arrays(path)
    has_edges = "edge_index" in arrays
    if not has_edges:
        arrays["num_edges"] = torch.zeros(len(arrays.get("num_nodes", ())), dtype=torch.int64)
        arrays["edge_index"] = torch.zeros(2, 0, dtype=torch.int16)
    try:
        dataset = from_arrays(arrays).limited(limit)
    except InputError as error:
        raise InputError(f"{path} cannot be used. {error}") from error
    if not dataset.x.is_floating_point():
        dataset = replace(dataset, x=(dataset.x.float() / scale))
    if has_edges:
        return dataset
    require(dataset.pos is not None, f"{path} has neither edge_index nor pos: give one of them.")
    assert dataset.pos is not None
    edge_index, edge_attr = superpixel_edges(dataset.node_ptr.diff(), dataset.pos)
    return replace(dataset, edge_ptr=NEIGHBOURS * dataset.node_ptr, edge_index=edge_index, edge_attr=edge_attr)


def _folder(path: Path) -> PackedDataset:
    """Join train.npz, val.npz and test.npz, whose own split arrays are ignored."""
    parts = {}
    for name in ("train", "val", "test"):
        file = path / f"{name}.npz"
        require(file.exists(), f"{path} has no {name}.npz: give train.npz, val.npz and test.npz.")
        parts[name] = load_packed(file)
    return join(parts)
