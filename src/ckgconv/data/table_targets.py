"""Columns of a table → targets y, as the losses read them.

    numbers only                   y [M, T] float: values or labels, NaN where unknown
    one column of classes          y [M] int64: the number of the class, -1 where unknown
    classes and other columns      y [M, T] float: a number as itself, a class as one column of 0 or 1 for each of its
                                   names, all NaN where unknown

The names of classes are the recipe's, so that numbers mean the same whatever rows a file has.

Legend: M rows, T outputs.
"""

import math

import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.data.table import Table, is_missing, printable
from ckgconv.recipe import DataRecipe

UNKNOWN = -1
TRUTH = {"true": 1.0, "false": 0.0}
MOST_CLASSES = 1000


def table_targets(table: Table, recipe: DataRecipe) -> Tensor:
    """y of all rows."""
    require(bool(recipe.targets), f"No target column of {table.path} was named: give --target NAME.")
    classes = recipe.classes or ((),) * len(recipe.targets)
    require(
        len(classes) == len(recipe.targets),
        f"data.classes has {len(classes)} entries for {len(recipe.targets)} targets: give one for each.",
    )
    if len(classes) == 1 and classes[0]:
        return class_numbers(table, recipe.targets[0], classes[0])
    parts = [
        _one_hot(class_numbers(table, name, names), len(names)) if names else number_column(table, name)
        for name, names in zip(recipe.targets, classes, strict=True)
    ]
    return torch.cat(parts, dim=1)


def known_rows(y: Tensor) -> Tensor:
    """[M] whether any target of a row is known."""
    return y.isfinite().any(dim=1) if y.is_floating_point() else y != UNKNOWN


def number_column(table: Table, name: str) -> Tensor:
    """[M, 1]; a column of the words true and false is one of 1 and 0."""
    cells = [cell.strip().lower() for cell in table.column(name)]
    values = [TRUTH.get(cell, math.nan) for cell in cells] if is_truth(cells) else table.numbers(name)
    found = torch.tensor(values, dtype=torch.float32).unsqueeze(-1)
    require(
        bool(found.isfinite().any()),
        f"Every value of target {name!r} in {table.path} is missing: choose another column.",
    )
    return found


def is_truth(cells: list[str]) -> bool:
    """Whether all known cells of a column are the words true or false."""
    known = {cell for cell in cells if not is_missing(cell)}
    return bool(known) and known <= TRUTH.keys()


def class_numbers(table: Table, name: str, names: tuple[str, ...]) -> Tensor:
    """[M] int64."""
    numbers = {each: number for number, each in enumerate(names)}
    found = []
    for line, cell in zip(table.lines, table.column(name), strict=True):
        text = cell.strip()
        if not is_missing(text) and text not in numbers:
            raise InputError(
                f"{table.place} {line} of {table.path} has '{printable(cell)}' in column '{printable(name)}', which is "
                f"none of the {len(names)} classes of the run: correct it, or leave the cell empty."
            )
        found.append(numbers.get(text, UNKNOWN))
    return torch.tensor(found)


def class_names(table: Table, name: str) -> tuple[str, ...]:
    """The distinct texts of a column: whole numbers in their order, otherwise by the alphabet."""
    found = {cell.strip() for cell in table.column(name) if not is_missing(cell)}
    shown = printable(name)
    require(len(found) > 1, f"Column '{shown}' of {table.path} has {len(found)} class: give at least two.")
    require(
        len(found) <= MOST_CLASSES,
        f"Column '{shown}' of {table.path} has {len(found):,} different texts, too many for classes: give at most "
        f"{MOST_CLASSES:,}, or a column of numbers.",
    )
    whole = all(text.lstrip("-").isdecimal() for text in found)
    return tuple(sorted(found, key=int) if whole else sorted(found))


def _one_hot(numbers: Tensor, classes: int) -> Tensor:
    """[M, C] float, NaN where unknown."""
    encoded = torch.nn.functional.one_hot(numbers.clamp(min=0), classes).float()
    return encoded.where((numbers != UNKNOWN).unsqueeze(-1), math.nan)
