"""Which rows of a table train, validate and test, as its recipe says.

    grouped splits    no group is divided, in folds neither; molecules that occur several times join the groups in which
                      they occur

Legend: M usable rows.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.data.clusters import butina_clusters
from ckgconv.data.molecules import parse_smiles, rdkit_chem, scaffold
from ckgconv.data.splits import (
    SPLITS,
    Split,
    check_sizes,
    grouped_split,
    random_split,
    scaffold_split,
    stratified_split,
)
from ckgconv.data.table import Table, is_missing, printable
from ckgconv.recipe import DataRecipe

WORDS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
GROUPED = ("random_with_repeated_smiles", "scaffold", "scaffold_balanced", "butina", "group")


def canonical(smiles: str, most_atoms: int) -> str:
    """The canonical SMILES of a valid one, with stereochemistry and isotopes."""
    return str(rdkit_chem().MolToSmiles(parse_smiles(smiles, most_atoms)))


def split_word(table: Table, recipe: DataRecipe, row: int) -> str:
    """The split that the split column names for a row; "" where its cell is empty."""
    cell = table.rows[row][table.columns.index(recipe.split_column)]
    word = cell.strip().lower()
    if word not in WORDS and not is_missing(word):
        raise InputError(
            f"{table.place} {table.lines[row]} of {table.path} has '{printable(cell)}' in column "
            f"'{printable(recipe.split_column)}': give train, val or test, or leave the cell empty."
        )
    return WORDS.get(word, "")


def table_groups(table: Table, recipe: DataRecipe, rows: Sequence[int]) -> list[int] | None:
    """The number of the group of each usable row; None where the split has no groups."""
    if recipe.split not in GROUPED:
        return None
    smiles = table.column(recipe.smiles)
    chosen = [smiles[row] for row in rows]
    groups: list[Hashable]
    if recipe.split == "butina":
        groups = list(butina_clusters(chosen, recipe.cluster_distance))
    elif recipe.split in ("scaffold", "scaffold_balanced"):
        groups = [scaffold(each) for each in chosen]
    else:
        molecules = [canonical(each, recipe.most_atoms) for each in chosen]
        if recipe.split == "random_with_repeated_smiles":
            groups = list(molecules)
        else:
            groups = _joined(_named_groups(table, recipe, rows), molecules)
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return [numbers[group] for group in groups]


def table_split(
    table: Table, recipe: DataRecipe, rows: Sequence[int], y: Tensor, groups: Sequence[int] | None
) -> Split:
    """Places among the usable rows of each split; y [M, ·] are their targets."""
    seed, sizes = recipe.split_seed, recipe.split_sizes
    check_sizes(sizes)
    if recipe.split == "column":
        return _by_column(table, recipe, rows)
    if recipe.split == "stratified":
        return stratified_split(_strata(y, recipe), seed, sizes)
    if recipe.split == "scaffold":
        smiles = table.column(recipe.smiles)
        return scaffold_split([smiles[row] for row in rows], sizes)
    if groups is not None:
        return grouped_split(groups, recipe.split, sizes, seed)
    return random_split(len(rows), seed, sizes)


def _by_column(table: Table, recipe: DataRecipe, rows: Sequence[int]) -> Split:
    words = [split_word(table, recipe, row) for row in rows]
    found = {name: [place for place, word in enumerate(words) if word == name] for name in SPLITS}
    for name in ("train", "val"):
        require(
            bool(found[name]),
            f"Column '{printable(recipe.split_column)}' of {table.path} names no usable row for {name!r}: give some.",
        )
    return {name: torch.tensor(places, dtype=torch.int64) for name, places in found.items()}


def _named_groups(table: Table, recipe: DataRecipe, rows: Sequence[int]) -> list[Hashable]:
    """The text of the group column; a row without one is a group of its own."""
    require(bool(recipe.group_column), "The split is 'group', but no column of groups was named: give --group-column.")
    cells = table.column(recipe.group_column)
    return [(row,) if is_missing(cells[row]) else cells[row].strip() for row in rows]


def _joined(groups: Sequence[Hashable], molecules: Sequence[str]) -> list[Hashable]:
    """Groups that share a molecule as one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    second = {each: len(first) + number for number, each in enumerate(dict.fromkeys(molecules))}
    ends = np.array([[first[group] for group in groups], [second[each] for each in molecules]])
    size = len(first) + len(second)
    edges = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(size, size))
    _, component = connected_components(edges, directed=False)
    return [int(component[place]) for place in ends[0]]


def _strata(y: Tensor, recipe: DataRecipe) -> list[Hashable]:
    """The classes or labels of each row; unknown ones are a class of their own."""
    labels = y.reshape(len(y), -1).double()
    columns = [column for column in labels.T if bool(((column == 0) | (column == 1) | column.isnan()).all())]
    if not y.is_floating_point():
        columns = [labels[:, 0]]
    require(
        bool(columns),
        f"The split is 'stratified', but {', '.join(recipe.targets)} are values without classes: use --split random.",
    )
    rows = torch.stack(columns, dim=1).nan_to_num(-1).long().tolist()
    return [tuple(row) for row in rows]
