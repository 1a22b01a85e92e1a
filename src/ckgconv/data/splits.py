"""Train, validation and test rows of one table, by default 80 / 10 / 10.

random                       a permutation of the rows, deterministic in a seed
random_with_repeated_smiles  the same of molecules: rows of one molecule go to one split
stratified                   random, with the share of each class the same in every split
scaffold                     all molecules of one Bemis-Murcko scaffold go to one split, the largest groups first, so
                             that test molecules have scaffolds that do not occur in training
scaffold_balanced            the same in an order that a seed draws, after groups larger than half a validation split
butina                       clusters of similar molecules (`clusters`) in place of scaffolds, drawn as above
group                        groups that a column names, drawn as above
column                       words in a column: train, val, test

Legend: M rows.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data.molecules import scaffold

SIZES = (0.8, 0.1, 0.1)
SPLITS = ("train", "val", "test")
Split = dict[str, Tensor]
# Allows for rounding: sums of decimal fractions are not exact.
TINY = 1e-9


def random_split(rows: int, seed: int, sizes: Sequence[float] = SIZES) -> Split:
    """Row numbers of each split."""
    check_rows(rows)
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    train, val = int(sizes[0] * rows + TINY), max(1, int(sizes[1] * rows + TINY))
    last = train + val if sizes[2] > 0 else rows
    return {"train": order[:train], "val": order[train:last], "test": order[last:]}


def stratified_split(strata: Sequence[Hashable], seed: int, sizes: Sequence[float] = SIZES) -> Split:
    """Row numbers of each split; the i-th of n rows of a stratum, in random order, is at (i + ½)/n of the sizes."""
    check_rows(len(strata))
    order = torch.randperm(len(strata), generator=torch.Generator().manual_seed(seed)).tolist()
    members: dict[Hashable, list[int]] = defaultdict(list)
    for row in order:
        members[strata[row]].append(row)
    chosen: dict[str, list[int]] = {name: [] for name in SPLITS}
    for rows in members.values():
        for place, row in enumerate(rows):
            share = (place + 0.5) / len(rows)
            number = int(share > sizes[0] + TINY) + int(share > sizes[0] + sizes[1] + TINY)
            chosen[SPLITS[number]].append(row)
    return _checked(chosen, sizes, "stratified")


def scaffold_split(smiles: Sequence[str], sizes: Sequence[float] = SIZES, seed: int | None = None) -> Split:
    """Row numbers of each split; without a seed the largest groups come first."""
    return grouped_split([scaffold(each) for each in smiles], "scaffold", sizes, seed)


def grouped_split(
    groups: Sequence[Hashable], what: str, sizes: Sequence[float] = SIZES, seed: int | None = None
) -> Split:
    """Row numbers of each split, no group in two of them; of equal groups the one with the smaller first row is first.

    With a seed, only groups that would take more than half of the validation or test split come first, and the others
    in a random order.
    """
    check_rows(len(groups))
    members: dict[Hashable, list[int]] = defaultdict(list)
    for row, group in enumerate(groups):
        members[group].append(row)
    ordered = sorted(members.values(), key=lambda group: (-len(group), group[0]))
    if seed is not None:
        half = min(size for size in sizes[1:] if size > 0) * len(groups) / 2
        large = [group for group in ordered if len(group) > half]
        small = ordered[len(large) :]
        order = torch.randperm(len(small), generator=torch.Generator().manual_seed(seed)).tolist()
        ordered = large + [small[place] for place in order]
    chosen: dict[str, list[int]] = {name: [] for name in SPLITS}
    for rows in ordered:
        if len(chosen["train"]) + len(rows) <= sizes[0] * len(groups) + TINY:
            chosen["train"] += rows
        elif len(chosen["train"]) + len(chosen["val"]) + len(rows) <= (sizes[0] + sizes[1]) * len(groups) + TINY:
            chosen["val"] += rows
        else:
            chosen["test" if sizes[2] > 0 else "val"] += rows
    return _checked(chosen, sizes, what)


def check_sizes(sizes: Sequence[float]) -> None:
    """Refuse shares that are not those of train, validation and test."""
    shown = " ".join(f"{size:g}" for size in sizes)
    require(len(sizes) == 3, f"The split sizes are {shown}: give three, of train, validation and test.")
    require(abs(sum(sizes) - 1) < 1e-6, f"The split sizes {shown} add up to {sum(sizes):g}: give shares of 1.")
    require(sizes[0] > 0 and sizes[1] > 0, f"The split sizes are {shown}: train and validation need some rows.")


def check_rows(rows: int) -> None:
    """Refuse a table that is too small for a split."""
    require(rows >= 10, f"The table has {rows} usable rows: give at least 10 molecules, which a split needs.")


def _checked(chosen: dict[str, list[int]], sizes: Sequence[float], what: str) -> Split:
    for name, rows, size in zip(SPLITS, chosen.values(), sizes, strict=True):
        require(bool(rows) or size == 0, f"The {what} split leaves no molecule for {name!r}: use --split random.")
    return {name: torch.tensor(rows, dtype=torch.int64) for name, rows in chosen.items()}
