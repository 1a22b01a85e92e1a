"""Train, validation and test rows of one table: 80 / 10 / 10.

random     a permutation of the rows, deterministic in a seed
scaffold   all molecules of one Bemis-Murcko scaffold go to one split, the largest groups first, so that test molecules
           have scaffolds that do not occur in training
"""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data.molecules import scaffold

TRAIN, VAL = 0.8, 0.1


def random_split(rows: int, seed: int) -> dict[str, Tensor]:
    """Row numbers of each split."""
    _check_rows(rows)
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    train, val = int(TRAIN * rows), max(1, int(VAL * rows))
    return {"train": order[:train], "val": order[train : train + val], "test": order[train + val :]}


def scaffold_split(smiles: Sequence[str]) -> dict[str, Tensor]:
    """Row numbers of each split; of groups of equal size the one with the smaller first row comes first."""
    _check_rows(len(smiles))
    groups: dict[str, list[int]] = defaultdict(list)
    for row, each in enumerate(smiles):
        groups[scaffold(each)].append(row)
    chosen: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for rows in sorted(groups.values(), key=lambda group: (-len(group), group[0])):
        if len(chosen["train"]) + len(rows) <= TRAIN * len(smiles):
            chosen["train"] += rows
        elif len(chosen["train"]) + len(chosen["val"]) + len(rows) <= (TRAIN + VAL) * len(smiles):
            chosen["val"] += rows
        else:
            chosen["test"] += rows
    for name, rows in chosen.items():
        require(bool(rows), f"The scaffold split leaves no molecule for {name!r}: use --split random.")
    return {name: torch.tensor(rows) for name, rows in chosen.items()}


def _check_rows(rows: int) -> None:
    require(rows >= 10, f"The table has {rows} usable rows: give at least 10 molecules, which a split needs.")
