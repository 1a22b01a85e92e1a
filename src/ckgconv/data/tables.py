"""A CSV of molecules: a column of SMILES, columns of targets, and any other columns.

An invalid molecule has a reason in place of a graph; a missing target is NaN and does not count in training.

Legend: M rows, T targets.
"""

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.data.door import LARGEST
from ckgconv.data.molecules import MOST_ATOMS, Featuriser, Molecule, read_smiles
from ckgconv.data.packed import PackedDataset, from_arrays
from ckgconv.data.splits import random_split, scaffold_split
from ckgconv.recipe import DataRecipe

MISSING = {"", "nan", "na", "n/a", "null", "none"}
NAMES_SHOWN, LETTERS_SHOWN = 20, 80
# Rows shorter than the header are filled up, so a wide header makes many cells of few letters.
MOST_CELLS = 2 * 10**7


@dataclass(frozen=True)
class Table:
    """The cells of a CSV, as text."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]  # where each row is in the file, from 1

    def column(self, name: str) -> list[str]:
        if name not in self.columns:
            shown = ", ".join(map(printable, self.columns[:NAMES_SHOWN]))
            more = f" and {len(self.columns) - NAMES_SHOWN:,} others" if len(self.columns) > NAMES_SHOWN else ""
            raise InputError(f"{self.path} has no column '{printable(name)}': its columns are {shown}{more}.")
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def numbers(self, name: str) -> list[float]:
        """A column as floats; NaN where a cell is empty or says that the value is missing."""
        cells = zip(self.lines, self.column(name), strict=True)
        return [_number(text, self.path, name, line) for line, text in cells]


def read_table(path: Path) -> Table:
    """Read a CSV with a header line; rows shorter than the header are filled with empty cells.

    A quoted cell ends on its line: one that goes on is nearly always a quote that was never closed, and would swallow
    the rows up to the next quote.
    """
    require(not path.exists() or path.is_file(), f"{path} is a folder or a device: give a CSV.")
    lines, numbers = _lines(path)
    require(len(lines) > 0, f"{path} is empty: give a CSV with a header line and one molecule per line.")
    header, *rows = lines
    require(len(rows) > 0, f"{path} has a header but no rows: give one molecule per line.")
    separators = [mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]]
    require(not separators, f"{path} separates its cells by {''.join(separators[:1])!r}: save it with commas.")
    repeated = [printable(name) for name, count in Counter(header).items() if count > 1]
    require(not repeated, f"{path} has two columns '{''.join(repeated[:1])}': give each column a name of its own.")
    for number, row in zip(numbers[1:], rows, strict=True):
        require(
            len(row) <= len(header),
            f"Line {number} of {path} has more cells than the header: quote cells that contain commas.",
        )
    cells = len(header) * len(rows)
    require(cells <= MOST_CELLS, f"{path} has {cells:,} cells: give at most {MOST_CELLS:,}, in several files.")
    filled = tuple((*row, *[""] * (len(header) - len(row))) for row in rows)
    return Table(path, tuple(header), filled, tuple(numbers[1:]))


def _lines(path: Path) -> tuple[list[list[str]], list[int]]:
    """The cells of all lines that are not empty, and the numbers of these lines."""
    lines, numbers, last = [], [], 0
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                require(
                    reader.line_num == last + 1,
                    f"Line {last + 1} of {path} has a quoted cell that goes on to line {reader.line_num}: close its "
                    f"quote, or remove the line breaks in it.",
                )
                last = reader.line_num
                if row:
                    lines.append(row)
                    numbers.append(last)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        place = f" in line {last + 1}" if isinstance(error, csv.Error) else ""
        raise InputError(
            f"{path} cannot be read as a CSV ({error}{place}): give a text file with a header, each quote closed."
        ) from error
    return lines, numbers


def printable(text: str) -> str:
    """Text for a message: control characters, which a terminal would obey, are escaped, and long text is cut."""
    cut = text if len(text) <= LETTERS_SHOWN else text[: LETTERS_SHOWN - 1] + "…"
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut)


def read_molecules(
    smiles: Sequence[str], featuriser: Featuriser, most_atoms: int = MOST_ATOMS
) -> tuple[list[Molecule | None], list[str]]:
    """The graph of each SMILES, and a reason; the graph is None where the SMILES is invalid or too large, else the
    reason is "".
    """
    molecules: list[Molecule | None] = []
    reasons = []
    for each in smiles:
        try:
            molecules.append(read_smiles(each, featuriser, most_atoms))
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
    molecules, reasons = read_molecules(smiles, "molecule", recipe.most_atoms)
    known = targets.isfinite().any(dim=1).tolist()
    rows = [row for row, each in enumerate(molecules) if each is not None and known[row]]
    first = next((f" Line {line}: {reason}" for line, reason in zip(table.lines, reasons, strict=True) if reason), "")
    require(
        len(rows) > 0, f"No row of {table.path} has a valid SMILES in column {recipe.smiles!r}: check --smiles.{first}"
    )
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
            f"Line {line} of {path} has '{printable(text)}' in column '{printable(column)}': give a number, or leave "
            f"the cell empty."
        ) from error
    require(
        abs(value) <= LARGEST,
        f"Line {line} of {path} has '{printable(text)}' in column '{printable(column)}': give a finite number, at most "
        f"{LARGEST:g} in size.",
    )
    return value
