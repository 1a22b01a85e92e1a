"""k folds of the graphs of a data set: in fold i, F_i is tested, F_{i+1 mod k} validates, and the others train.

All graphs are divided, whatever their splits, by a seed. Where targets are classes, or one label, every fold has the
same share of each (scikit-learn's StratifiedKFold); other targets are divided at random. Groups of a table's rows are
never divided: the largest first, each goes to the fold with the fewest graphs, in an order that the seed draws among
groups of one size.

Legend: G graphs.
"""

import warnings
from dataclasses import replace

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data.packed import PackedDataset
from ckgconv.recipe import DataRecipe

# Rows with unknown targets form a class of their own.
UNKNOWN = -1
# Splits that keep groups of rows together, which tables alone have.
GROUPED = ("random_with_repeated_smiles", "scaffold", "scaffold_balanced", "butina", "group")


def folded(data: PackedDataset, recipe: DataRecipe, groups: Tensor | None = None) -> PackedDataset:
    """The data set with the splits of the recipe's fold; as it is where the recipe has no folds.

    `groups` [G] are numbers of groups that no fold divides.
    """
    if recipe.folds is None:
        return data
    check_folds(recipe)
    _check_graphs(data, recipe, recipe.folds)
    require(
        groups is not None or recipe.split not in GROUPED,
        f"data.split is {recipe.split!r}, but the data set {recipe.name!r} has no groups of that kind, and its folds "
        f"are drawn at random: leave out data.split.",
    )
    if groups is None:
        parts = divide(data, recipe.folds, recipe.split_seed)
    else:
        parts = divide_groups(groups, recipe.folds, recipe.split_seed)
    test, val = recipe.fold, (recipe.fold + 1) % recipe.folds
    train = torch.cat([part for number, part in enumerate(parts) if number not in (test, val)]).sort().values
    return replace(data, train=train, val=parts[val], test=parts[test])


def divide(data: PackedDataset, folds: int, seed: int) -> list[Tensor]:
    """Numbers of the graphs of each fold, ascending."""
    from sklearn.model_selection import KFold, StratifiedKFold  # imported here, since it takes a second

    classes = strata(data)
    most = 0 if classes is None else int(classes.unique(return_counts=True)[1].max())
    division = (StratifiedKFold if most >= folds else KFold)(n_splits=folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer graphs than folds is absent from some of them
        numbers = [test for _, test in division.split(range(data.num_graphs), None if most < folds else classes)]
    device = data.train.device
    return [torch.from_numpy(part).to(device) for part in numbers]


def divide_groups(groups: Tensor, folds: int, seed: int) -> list[Tensor]:
    """As `divide`, with every group in one fold."""
    members = [(groups == number).nonzero().squeeze(-1) for number in groups.unique()]
    require(
        len(members) >= folds, f"The rows are in {len(members)} groups for {folds} folds: give at most as many folds."
    )
    drawn = torch.randperm(len(members), generator=torch.Generator().manual_seed(seed)).tolist()
    parts: list[list[Tensor]] = [[] for _ in range(folds)]
    sizes = [0] * folds
    for place in sorted(drawn, key=lambda place: -len(members[place])):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(members[place])
        sizes[smallest] += len(members[place])
    return [torch.cat(part).sort().values for part in parts]


def strata(data: PackedDataset) -> Tensor | None:
    """[G] the class of each graph; None where targets are values, several labels, or of nodes."""
    y = data.y
    if y is None or data.node_targets or y.numel() != data.num_graphs:
        return None
    y = y.reshape(-1).cpu()
    if not y.is_floating_point():
        return y.long()
    known = y == y
    labels = bool(((y == 0) | (y == 1) | (y == UNKNOWN) | ~known).all())
    return y.where(known, UNKNOWN).long() if labels else None


def check_folds(recipe: DataRecipe) -> None:
    """Refuse folds that no data set could have."""
    folds = recipe.folds
    if folds is None:
        return
    require(folds >= 3, f"data.folds is {folds}: give at least 3, one to test, one to validate and one to train.")
    require(recipe.fold < folds, f"data.fold is {recipe.fold}: give a number from 0 to {folds - 1}.")
    require(
        recipe.split != "column",
        f"data.split_column is {recipe.split_column!r}, but folds are drawn: choose one of them.",
    )


def _check_graphs(data: PackedDataset, recipe: DataRecipe, folds: int) -> None:
    name = f"The data set {recipe.name!r}"
    require(data.node_split is None, f"{name} splits its nodes, but folds divide graphs: leave out data.folds.")
    require(
        data.num_graphs >= folds, f"{name} has {data.num_graphs} graphs for {folds} folds: give at most as many folds."
    )
