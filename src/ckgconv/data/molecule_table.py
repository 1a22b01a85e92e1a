"""A table of molecules → a packed data set: a column of SMILES, columns of targets, a split.

An invalid molecule has a reason in place of a graph and is left out; a missing target does not count in training.

Legend: M rows, G graphs: the usable rows, in the order of the data set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data.folds import check_folds, folded
from ckgconv.data.molecules import Molecule
from ckgconv.data.packed import PackedDataset
from ckgconv.data.packed_molecules import pack_molecules, read_molecules, with_values
from ckgconv.data.splits import SPLITS
from ckgconv.data.table import Table, printable
from ckgconv.data.table_split import split_word, table_groups, table_split
from ckgconv.data.table_targets import known_rows, table_targets
from ckgconv.data.tables import read_table
from ckgconv.recipe import DataRecipe


@dataclass(frozen=True)
class LoadedTable:
    """A data set with the rows that it was made of."""

    dataset: PackedDataset
    table: Table
    rows: tuple[int, ...]  # [G] the row of the table of each graph
    reasons: tuple[str, ...]  # [M] why a row is not used; "" where it is
    y: Tensor  # [M, ·] targets of all rows


def load_table(recipe: DataRecipe) -> PackedDataset:
    """The usable molecules of a table with their targets, and the recipe's split or fold."""
    return loaded_table(recipe).dataset


def loaded_table(recipe: DataRecipe) -> LoadedTable:
    """As `load_table`, with the rows of the table."""
    check_folds(recipe)
    table = read_table(Path(recipe.name), recipe.most_atoms)
    y = table_targets(table, recipe)
    molecules, reasons = table_molecules(table, recipe.smiles, recipe.most_atoms)
    _check_any(table, recipe, molecules, reasons)
    molecules = with_values(molecules, feature_rows(table, recipe.features))
    reasons = _with_other_reasons(table, recipe, y, reasons)
    rows = [row for row, reason in enumerate(reasons) if not reason]
    require(len(rows) > 0, f"No row of {table.path} has a valid SMILES and a target: give some.")
    kept = [each for row in rows if (each := molecules[row]) is not None]
    dataset = replace(pack_molecules(kept, y[rows], recipe), target_weight=_weights(table, recipe, rows))
    groups = table_groups(table, recipe, rows)
    if recipe.folds is not None and groups is not None:
        nothing = torch.zeros(0, dtype=torch.int64)
        split = {"train": torch.arange(len(rows)), "val": nothing, "test": nothing}
    else:
        split = table_split(table, recipe, rows, y[rows], groups)
    if recipe.limit is not None:
        require(recipe.limit > 0, f"data.limit is {recipe.limit}: give at least 1 row.")
        split = {name: split[name][: recipe.limit] for name in SPLITS}
    order = torch.cat([split[name] for name in SPLITS]).tolist()
    in_order = None if groups is None else torch.tensor([groups[place] for place in order])
    divided = folded(dataset.subset(split), recipe, in_order)
    return LoadedTable(divided, table, tuple(rows[place] for place in order), tuple(reasons), y)


def table_molecules(table: Table, column: str, most_atoms: int) -> tuple[list[Molecule | None], list[str]]:
    """Graphs of a table's molecules, and the reason where there is none; that of the file itself comes first."""
    molecules, reasons = read_molecules(table.column(column), "molecule", most_atoms)
    own = table.reasons or [""] * len(reasons)
    return molecules, [first or second for first, second in zip(own, reasons, strict=True)]


def feature_rows(table: Table, columns: Sequence[str]) -> list[tuple[float, ...]]:
    """For each row the numbers of these columns, NaN where a cell is empty."""
    return list(zip(*(table.numbers(name) for name in columns), strict=True)) or [()] * len(table.rows)


def _check_any(table: Table, recipe: DataRecipe, molecules: Sequence[Molecule | None], reasons: Sequence[str]) -> None:
    first = next(
        (f" {table.place} {line}: {reason}" for line, reason in zip(table.lines, reasons, strict=True) if reason), ""
    )
    require(
        any(each is not None for each in molecules),
        f"No row of {table.path} has a valid SMILES in column {recipe.smiles!r}: check --smiles.{first}",
    )


def _with_other_reasons(table: Table, recipe: DataRecipe, y: Tensor, reasons: Sequence[str]) -> list[str]:
    """Rows of valid molecules that are not used for another reason."""
    known = known_rows(y).tolist()
    if recipe.split == "column":
        table.column(recipe.split_column)  # refuses a table without any
    found = []
    for row, reason in enumerate(reasons):
        other = "" if known[row] else "Every target is missing."
        if not other and recipe.split == "column" and recipe.folds is None and not split_word(table, recipe, row):
            other = "The cell of the split column is empty."
        found.append(reason or other)
    return found


def _weights(table: Table, recipe: DataRecipe, rows: Sequence[int]) -> Tensor | None:
    """[G] weights in the loss; None where no column gives any."""
    if not recipe.weight_column:
        return None
    cells, shown = table.column(recipe.weight_column), printable(recipe.weight_column)
    weights, commas = [], table.has_decimal_commas(recipe.weight_column)
    for row in rows:
        value = table.number(cells[row], recipe.weight_column, table.lines[row], commas)
        require(
            value >= 0,
            f"{table.place} {table.lines[row]} of {table.path} has '{printable(cells[row])}' in the column of weights "
            f"'{shown}': give a number of zero or more.",
        )
        weights.append(value)
    found = torch.tensor(weights, dtype=torch.float32)
    require(bool((found > 0).any()), f"Every weight in column '{shown}' of {table.path} is 0: give some above it.")
    return found
