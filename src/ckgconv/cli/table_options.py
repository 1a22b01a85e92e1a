"""Options of `ckgconv train` that say what a table of molecules contains, and the recipe that follows from them."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.checks import InputError, require
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.data.tables import read_table, stem
from ckgconv.recipe import DataRecipe, Recipe
from ckgconv.recipe.limits import usable_name
from ckgconv.recipes.molecules import molecules
from ckgconv.registry import nearest


class Split(StrEnum):
    random = "random"
    scaffold = "scaffold"


@dataclass(frozen=True)
class TableOptions:
    """Columns of a table, and how its rows are split."""

    smiles: Annotated[str, typer.Option("--smiles", help="CSV: column of the SMILES.")] = "smiles"
    target: Annotated[list[str] | None, typer.Option("--target", help="CSV: column to predict. Repeatable.")] = None
    split: Annotated[Split, typer.Option("--split", help="CSV: how to split the rows.")] = Split.random

    @property
    def targets(self) -> list[str]:
        """Columns to predict."""
        return self.target or []

    def refuse(self, what: str) -> None:
        """Refuse options of a table that were given with something else."""
        if self.targets:
            raise InputError(f"--target belongs to a CSV, not to {what!r}: leave it out.")


def table_recipe(path: Path, options: TableOptions) -> Recipe:
    """A recipe for a CSV: classification where every known target is 0 or 1, regression otherwise."""
    require(path.exists(), f"{path} does not exist: check the path of the table.")
    table, smiles, targets = read_table(path), options.smiles, options.targets
    others = [name for name in table.columns if name != smiles]
    require(bool(targets), f"No target was named: give --target with one of {', '.join(others)}.")
    for name in (smiles, *targets):
        if name not in table.columns:
            raise InputError(f"{path} has no column {name!r}: {nearest(name, list(table.columns))}")
    values = {value for name in targets for value in table.numbers(name) if value == value}
    require(len(set(targets)) == len(targets), "The same target was given twice: give each once.")
    split = options.split.value
    data = DataRecipe(
        str(path.resolve()),
        smiles=smiles,
        targets=tuple(targets),
        descriptors="rdkit",
        split=split,  # type: ignore[arg-type]
    )
    classification = bool(values) and values <= {0.0, 1.0}
    chosen = molecules(data, classification, rows=len(table.rows), read=len(DESCRIPTORS))
    return replace(chosen, name=usable_name(stem(path), "table"))
