"""A CSV of molecules: a column of SMILES, columns of targets, and any other columns.

An invalid molecule has a reason in place of a graph; a missing target is NaN and does not count in training.

Legend: M rows, T targets.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.data.molecules import Featuriser, Molecule, read_smiles
from ckgconv.data.packed import PackedDataset, from_arrays
from ckgconv.data.splits import random_split, scaffold_split
from ckgconv.recipe import DataRecipe

MISSING = {"", "nan", "na", "n/a", "null", "none"}


@dataclass(frozen=True)
class Table:
    """The cells of a CSV, as text."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        require(
            name in self.columns,
            f"{self.path} has no column {name!r}: its columns are {', '.join(self.columns)}.",
        )
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def numbers(self, name: str) -> list[float]:
        """A column as floats; NaN where a cell is empty or says that the value is missing."""
        return [_number(text, self.path, name, line) for line, text in enumerate(self.column(name), start=2)]


def read_table(path: Path) -> Table:
    """Read a CSV with a header line; rows shorter than the header are filled with empty cells."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a CSV ({error}): give a text file with a header.") from error
    require(len(lines) > 0, f"{path} is empty: give a CSV with a header line and one molecule per line.")
    header, *rows = lines
    require(len(rows) > 0, f"{path} has a header but no rows: give one molecule per line.")
    separators = [mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]]
    require(not separators, f"{path} separates its cells by {''.join(separators[:1])!r}: save it with commas.")
    repeated = [name for index, name in enumerate(header) if name in header[:index]]
    require(not repeated, f"{path} has two columns {''.join(repeated[:1])!r}: give each column a name of its own.")
    long = [number for number, row in enumerate(rows, start=2) if len(row) > len(header)]
    require(
        not long,
        f"Line {long[0] if long else 0} of {path} has more cells than the header: quote cells that contain commas.",
    )
    filled = tuple((*row, *[""] * (len(header) - len(row))) for row in rows)
    return Table(path, tuple(header), filled)


def read_molecules(smiles: Sequence[str], featuriser: Featuriser) -> tuple[list[Molecule | None], list[str]]:
    """The graph of each SMILES, and a reason; the graph is None where the SMILES is invalid, else the reason is ""."""
    molecules: list[Molecule | None] = []
    reasons = []
    for each in smiles:
        try:
            molecules.append(read_smiles(each, featuriser))
            reasons.append("")
        except InputError as error:
            molecules.append(None)
            reasons.append(str(error))
    return molecules, reasons


def pack_molecules(molecules: Sequence[Molecule], targets: Tensor | None = None) -> PackedDataset:
    """Molecules as one data set, all in the split "test"."""
    arrays = {
        "num_nodes": torch.tensor([len(each.x) for each in molecules]),
        "num_edges": torch.tensor([each.edge_index.shape[1] for each in molecules]),
        "edge_index": torch.from_numpy(np.concatenate([each.edge_index for each in molecules], axis=1)),
        "x": torch.from_numpy(np.concatenate([each.x for each in molecules])),
        "edge_attr": torch.from_numpy(np.concatenate([each.edge_attr for each in molecules])),
    }
    return from_arrays(arrays if targets is None else {**arrays, "y": targets})


def load_table(recipe: DataRecipe) -> PackedDataset:
    """The valid molecules of a CSV with their targets [M, T] and the recipe's split."""
    table = read_table(Path(recipe.name))
    require(bool(recipe.targets), f"No target column of {table.path} was named: give --target NAME.")
    smiles = table.column(recipe.smiles)
    targets = torch.tensor([table.numbers(name) for name in recipe.targets], dtype=torch.float32).T
    for name, values in zip(recipe.targets, targets.T, strict=True):
        require(
            bool(values.isfinite().any()),
            f"Every value of target {name!r} in {table.path} is missing: choose another column.",
        )
    molecules, _ = read_molecules(smiles, "molecule")
    known = targets.isfinite().any(dim=1).tolist()
    rows = [row for row, each in enumerate(molecules) if each is not None and known[row]]
    require(len(rows) > 0, f"No row of {table.path} has a valid SMILES in column {recipe.smiles!r}: check --smiles.")
    kept = [each for row in rows if (each := molecules[row]) is not None]
    dataset = pack_molecules(kept, targets[rows])
    if recipe.split == "scaffold":
        return dataset.subset(scaffold_split([smiles[row] for row in rows]))
    return dataset.subset(random_split(len(rows), recipe.split_seed))


def _number(text: str, path: Path, column: str, line: int) -> float:
    if text.strip().lower() in MISSING:
        return math.nan
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(
            f"Line {line} of {path} has {text!r} in column {column!r}: give a number, or leave the cell empty."
        ) from error
    require(
        abs(value) <= torch.finfo(torch.float32).max,
        f"Line {line} of {path} has {text!r} in column {column!r}: give a finite number, at most 3.4e38 in size.",
    )
    return value
