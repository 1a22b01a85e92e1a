"""A table of molecules → a packed data set: a column of SMILES, columns of targets, a split.

An invalid molecule has a reason in place of a graph and is left out; a missing target is NaN and does not count in
training.

Legend: M rows, T targets.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from ckgconv.checks import require
from ckgconv.data.molecules import Molecule
from ckgconv.data.packed import PackedDataset
from ckgconv.data.packed_molecules import pack_molecules, read_molecules, with_values
from ckgconv.data.splits import random_split, scaffold_split
from ckgconv.data.table import Table
from ckgconv.data.tables import read_table
from ckgconv.recipe import DataRecipe


def table_molecules(table: Table, column: str, most_atoms: int) -> tuple[list[Molecule | None], list[str]]:
    """Graphs of a table's molecules, and the reason where there is none; that of the file itself comes first."""
    molecules, reasons = read_molecules(table.column(column), "molecule", most_atoms)
    own = table.reasons or [""] * len(reasons)
    return molecules, [first or second for first, second in zip(own, reasons, strict=True)]


def feature_rows(table: Table, columns: Sequence[str]) -> list[tuple[float, ...]]:
    """For each row the numbers of these columns, NaN where a cell is empty."""
    return list(zip(*(table.numbers(name) for name in columns), strict=True)) or [()] * len(table.rows)


def load_table(recipe: DataRecipe) -> PackedDataset:
    """The valid molecules of a table with their targets [M, T] and the recipe's split."""
    table = read_table(Path(recipe.name), recipe.most_atoms)
    require(bool(recipe.targets), f"No target column of {table.path} was named: give --target NAME.")
    smiles = table.column(recipe.smiles)
    targets = torch.tensor([table.numbers(name) for name in recipe.targets], dtype=torch.float32).T
    for name, values in zip(recipe.targets, targets.T, strict=True):
        require(
            bool(values.isfinite().any()),
            f"Every value of target {name!r} in {table.path} is missing: choose another column.",
        )
    molecules, reasons = table_molecules(table, recipe.smiles, recipe.most_atoms)
    molecules = with_values(molecules, feature_rows(table, recipe.features))
    known = targets.isfinite().any(dim=1).tolist()
    rows = [row for row, each in enumerate(molecules) if each is not None and known[row]]
    first = next(
        (f" {table.place} {line}: {reason}" for line, reason in zip(table.lines, reasons, strict=True) if reason), ""
    )
    require(
        len(rows) > 0, f"No row of {table.path} has a valid SMILES in column {recipe.smiles!r}: check --smiles.{first}"
    )
    kept = [each for row in rows if (each := molecules[row]) is not None]
    dataset = pack_molecules(kept, targets[rows], recipe)
    if recipe.split == "scaffold":
        return dataset.subset(scaffold_split([smiles[row] for row in rows]))
    return dataset.subset(random_split(len(rows), recipe.split_seed))
