"""Benchmarks from their official sources, read without running anything of what was downloaded.

    zinc-full                       molecules.zip: train, val and test .pickle, dictionaries of tensors
    mnist, cifar10, pattern,        NAME_v2.zip: one .pt, three lists of dictionaries of tensors
    cluster
    peptides-func, peptides-struct  a table of SMILES and targets, and the official split; MD5 of both as published
    mutag                           MUTAG.zip: text files

No digest is published for the zip archives: their first download is remembered (`archives`). Every data set must have
as many graphs in each split as its paper says.

Legend: G graphs, N nodes, E edges.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ckgconv.checks import InputError, require
from ckgconv.data.archives import Archive, fetch, gunzip, member, remember
from ckgconv.data.molecules import Molecule, read_smiles
from ckgconv.data.packed import SPLITS, PackedDataset, from_arrays
from ckgconv.data.plain_pickle import array_of, read_pickle, read_torch
from ckgconv.data.tables import read_table
from ckgconv.data.tu import read_tu

Array = NDArray[Any]
Graph = dict[str, Array]
GIGABYTE = 10**9
BENCHMARKS = "https://data.pyg.org/datasets/benchmarking-gnns"
DROPBOX = "https://www.dropbox.com/s"
STRUCTURE = (
    *("Inertia_mass_a", "Inertia_mass_b", "Inertia_mass_c", "Inertia_valence_a", "Inertia_valence_b"),
    *("Inertia_valence_c", "length_a", "length_b", "length_c", "Spherocity", "Plane_best_fit"),
)
SPLIT_MD5 = "5a0114bdadc80b94fc7ae974f13ef061"


@dataclass(frozen=True)
class Official:
    """Where a benchmark comes from.

    Args:
        archives: what to download.
        read: paths of the archives, and a folder to unpack them into → the graphs of each split, in order.
        graphs: how many graphs each split must have.
    """

    archives: tuple[Archive, ...]
    read: Callable[[list[Path], Path], dict[str, list[Graph]]]
    graphs: dict[str, int]


def download(name: str, folder: Path) -> PackedDataset:
    """Download a named data set from its official source and pack it; what was downloaded is removed again."""
    source = OFFICIAL[name]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as place:
            paths = [fetch(archive, Path(place), folder) for archive in source.archives]
            graphs = _read(source, paths, Path(place))
            remember(source.archives, paths, folder)
            return graphs
    except (InputError, OSError) as error:
        raise InputError(
            f"{name} could not be downloaded: {error} Connect to the network, or put its packed file into the data "
            f"folder (--data-dir or CKGCONV_DATA)."
        ) from error


def _read(source: Official, paths: list[Path], folder: Path) -> PackedDataset:
    """The graphs of the archives of a data set."""
    try:
        splits = source.read(paths, folder)
        counts = {split: len(graphs) for split, graphs in splits.items()}
        require(counts == source.graphs, f"It has {counts} graphs, not {source.graphs}.")
        return packed(splits)
    except (InputError, OSError, MemoryError):
        raise
    except Exception as error:  # whatever the readers make of another structure than the official one
        names = " and ".join(archive.name for archive in source.archives)
        raise InputError(f"What {names} holds has not the official structure ({type(error).__name__}).") from error


def mutag(folder: Path) -> PackedDataset:
    """MUTAG from its official source; all graphs are in one split, to be divided into folds."""
    return download("mutag", folder)


def packed(splits: dict[str, list[Graph]]) -> PackedDataset:
    """Graphs, split by split, as one data set."""
    graphs = [graph for each in splits.values() for graph in each]
    counts = [len(each) for each in splits.values()]
    starts = np.cumsum([0, *counts])
    arrays: dict[str, Array] = {
        "num_nodes": np.array([len(graph["x"]) for graph in graphs]),
        "num_edges": np.array([graph["edge_index"].shape[-1] for graph in graphs]),
        "edge_index": np.concatenate([graph["edge_index"] for graph in graphs], axis=1),
        **{f"{name}_idx": np.arange(start, end) for name, start, end in zip(splits, starts, starts[1:], strict=False)},
    }
    for name in ("x", "edge_attr", "pos", "y"):
        if name in graphs[0]:
            joined = np.concatenate([graph[name] for graph in graphs])
            arrays[name] = joined[:, None] if name in ("x", "edge_attr") and joined.ndim == 1 else joined
    return from_arrays({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()})


def _benchmark(paths: list[Path], folder: Path) -> dict[str, list[Graph]]:
    """Three lists of dictionaries with x, edge_index, y, and edge_attr and pos where there are any."""
    name = paths[0].stem + ".pt"
    splits = read_torch(member(paths[0], name, folder, 16 * GIGABYTE))
    require(isinstance(splits, list | tuple) and len(splits) == len(SPLITS), f"{name} does not hold three splits.")
    return {split: [_dictionary(each) for each in graphs] for split, graphs in zip(SPLITS, splits, strict=True)}


def _dictionary(values: Any) -> Graph:
    require(isinstance(values, dict), f"A graph is a {type(values).__name__}, not a dictionary.")
    names = ("x", "edge_index", "edge_attr", "pos", "y")
    graph = {name: array_of(values[name]) for name in names if values.get(name) is not None}
    require({"x", "edge_index", "y"} <= set(graph), "A graph lacks x, edge_index or y.")
    return graph


def _zinc(paths: list[Path], folder: Path) -> dict[str, list[Graph]]:
    """Dictionaries with atom types [n], a matrix of bond types [n, n] and the target."""
    splits = {}
    for split in SPLITS:
        file = member(paths[0], f"molecules/{split}.pickle", folder, 16 * GIGABYTE)
        molecules = read_pickle(file.read_bytes())
        file.unlink()
        splits[split] = [_zinc_graph(each) for each in molecules]
    return splits


def _zinc_graph(values: Any) -> Graph:
    atoms, bonds = (_types(values[name], name) for name in ("atom_type", "bond_type"))
    require(
        bonds.shape == (atoms.size, atoms.size) and atoms.size < 2**15,
        f"A molecule of {atoms.size:,} atoms has bonds of shape {list(bonds.shape)}.",
    )
    edges = np.stack(bonds.nonzero())
    return {
        "x": atoms.reshape(-1, 1),
        "edge_index": edges.astype(np.int16),
        "edge_attr": bonds[tuple(edges)].reshape(-1, 1),
        "y": array_of(values["logP_SA_cycle_normalized"]).reshape(1).astype(np.float32),
    }


def _types(values: Any, name: str) -> Array:
    """Whole numbers that 8 bits hold, of any dtype; others would become other types."""
    array = array_of(values)
    fits = array.dtype.kind in "iuf" and array.min(initial=0) >= 0 and array.max(initial=0) < 2**8
    types = array.astype(np.uint8) if fits else np.zeros(0, np.uint8)
    require(np.array_equal(types, array), f"{name} has other values than the numbers of types, 0 … 255.")
    return types


def _peptides(targets: Callable[[Any], Array]) -> Callable[[list[Path], Path], dict[str, list[Graph]]]:
    """A reader of a table of SMILES, whose targets [G, T] `targets` takes from its columns, and of a split."""

    def read(paths: list[Path], folder: Path) -> dict[str, list[Graph]]:
        table = read_table(gunzip(paths[0], folder, GIGABYTE))
        y = targets(table)
        molecules = [read_smiles(each, "molecule") for each in table.column("smiles")]
        graphs = [_molecule(each, row) for each, row in zip(molecules, y, strict=True)]
        division = read_pickle(paths[1].read_bytes())
        rows = {split: array_of(division[split]) for split in SPLITS}
        taken = np.concatenate(list(rows.values()))
        require(len(np.unique(taken)) == len(taken), "The split names a row twice.")
        return {split: _chosen(graphs, numbers) for split, numbers in rows.items()}

    return read


def _chosen(graphs: list[Graph], numbers: Array) -> list[Graph]:
    wrong = numbers.dtype.kind not in "iu" or bool(((numbers < 0) | (numbers >= len(graphs))).any())
    require(not wrong, "The split names rows that the table does not have.")
    return [graphs[number] for number in numbers.tolist()]


def _molecule(molecule: Molecule, target: Array) -> Graph:
    return {"x": molecule.x, "edge_index": molecule.edge_index, "edge_attr": molecule.edge_attr, "y": target[None]}


def _functions(table: Any) -> Array:
    """[G, 10] labels, each row a list in one cell."""
    rows = [[int(label) for label in cell.strip("[] ").split(",")] for cell in table.column("labels")]
    return np.array(rows, dtype=np.uint8)


def _structures(table: Any) -> Array:
    """[G, 11] values, standardised over all rows as the benchmark's loader does."""
    values = np.array([table.numbers(name) for name in STRUCTURE]).T
    return ((values - values.mean(0)) / values.std(0, ddof=1)).astype(np.float32)


def _mutag(paths: list[Path], folder: Path) -> dict[str, list[Graph]]:
    names = ("A", "graph_indicator", "graph_labels", "node_labels", "edge_labels")
    texts = {name: member(paths[0], f"MUTAG/MUTAG_{name}.txt", folder, GIGABYTE).read_text() for name in names}
    return {"test": read_tu(texts)}


def _peptide_archives(table: Archive, split: str) -> tuple[Archive, Archive]:
    return table, Archive("split.pickle", f"{DROPBOX}/{split}?dl=1", GIGABYTE, md5=SPLIT_MD5)


def _superpixels_or_blocks(name: str, train: int, val: int, test: int) -> Official:
    file = f"{name}_v2.zip"
    counts = {"train": train, "val": val, "test": test}
    return Official((Archive(file, f"{BENCHMARKS}/{file}", 4 * GIGABYTE),), _benchmark, counts)


PEPTIDES = {"train": 10_873, "val": 2_331, "test": 2_331}
MOLECULES = Archive("molecules.zip", f"{DROPBOX}/feo9qle74kg48gy/molecules.zip?dl=1", 4 * GIGABYTE)
FUNCTIONS = Archive(
    "peptide_multi_class_dataset.csv.gz",
    f"{DROPBOX}/ol2v01usvaxbsr8/peptide_multi_class_dataset.csv.gz?dl=1",
    GIGABYTE,
    md5="701eb743e899f4d793f0e13c8fa5a1b4",
)
STRUCTURES = Archive(
    "peptide_structure_dataset.csv.gz",
    f"{DROPBOX}/464u3303eu2u4zp/peptide_structure_dataset.csv.gz?dl=1",
    GIGABYTE,
    md5="9786061a34298a0684150f2e4ff13f47",
)
OFFICIAL: dict[str, Official] = {
    "zinc-full": Official((MOLECULES,), _zinc, {"train": 220_011, "val": 24_445, "test": 5_000}),
    "mnist": _superpixels_or_blocks("MNIST", 55_000, 5_000, 10_000),
    "cifar10": _superpixels_or_blocks("CIFAR10", 45_000, 5_000, 10_000),
    "pattern": _superpixels_or_blocks("PATTERN", 10_000, 2_000, 2_000),
    "cluster": _superpixels_or_blocks("CLUSTER", 10_000, 1_000, 1_000),
    "peptides-func": Official(
        _peptide_archives(FUNCTIONS, "j4zcnx2eipuo0xz/splits_random_stratified_peptide.pickle"),
        _peptides(_functions),
        PEPTIDES,
    ),
    "peptides-struct": Official(
        _peptide_archives(STRUCTURES, "9dfifzft1hqgow6/splits_random_stratified_peptide_structure.pickle"),
        _peptides(_structures),
        PEPTIDES,
    ),
    "mutag": Official(
        (Archive("MUTAG.zip", "https://www.chrsmrrs.com/graphkerneldatasets/MUTAG.zip", GIGABYTE),),
        _mutag,
        {"test": 188},
    ),
}
