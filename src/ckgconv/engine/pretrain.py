"""Pretraining: a network learns to predict computed descriptors of many molecules, all at once.

    y = clip((d - mean)/s.d., ±6)     d the descriptors of `data.descriptors`, statistics of the training molecules

Molecules of tables that the network will be judged on are left out, by their canonical SMILES. What was read, left out
and used is written to molecules.json in the folder of the run.

Legend: M molecules, C descriptors.
"""

import csv
import gzip
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.data import PackedDataset
from ckgconv.data.descriptors import DESCRIPTORS, descriptors
from ckgconv.data.molecules import MOST_ATOMS, canonical
from ckgconv.data.tables import pack_molecules, read_molecules
from ckgconv.engine.run import Run, train
from ckgconv.engine.watcher import Watcher
from ckgconv.files import valid_json, write_text
from ckgconv.recipes.pretraining import pretraining
from ckgconv.tasks.scaling import fitted

# Standard deviations; counts of rare fragments lie far beyond, and would decide the loss.
MOST_DEVIATIONS = 6.0
VALIDATED = 2000


@dataclass(frozen=True)
class Chosen:
    """Molecules to train on, and how they were chosen."""

    smiles: tuple[str, ...]
    drawn: int  # lines looked at, in an order drawn by the seed
    excluded: int  # of these, in a table of the user's
    unreadable: int  # of these, no valid SMILES, or too many atoms
    repeated: int  # of these, seen before


@dataclass(frozen=True)
class Pretraining:
    """Which molecules, how many, and how long."""

    source: Path
    exclude: Sequence[Path] = ()
    molecules: int = 50_000
    epochs: int = 6
    seed: int = 0


def pretrain(plan: Pretraining, folder: Path, watcher: Watcher, device: str = "auto") -> tuple[Run, Chosen]:
    """Train the network of `recipes.pretraining` on the molecules of a file, and keep the run in `folder`."""
    chosen = choose(plan)
    data = described(chosen.smiles)
    recipe = pretraining(plan.source.name, DESCRIPTORS, plan.epochs)
    run = train(recipe, plan.seed, data, folder, device=device, watcher=watcher)
    counts = {name: value for name, value in asdict(chosen).items() if name != "smiles"}
    tables = [path.name for path in plan.exclude]
    write_text(folder / "molecules.json", valid_json({"used": len(chosen.smiles), **counts, "excluded_by": tables}))
    return run, chosen


def choose(plan: Pretraining) -> Chosen:
    """As many distinct molecules as asked for, in an order drawn by the seed; fewer where the file ends."""
    require(plan.molecules >= 2, f"--molecules is {plan.molecules}: give at least 2, to train and to validate.")
    lines = list(smiles_of(plan.source))
    random.Random(plan.seed).shuffle(lines)
    left_out = {found for path in plan.exclude for each in smiles_of(path) if (found := canonical(each)) is not None}
    kept: dict[str, None] = {}
    drawn = excluded = unreadable = repeated = 0
    for each in lines:
        if len(kept) == plan.molecules:
            break
        drawn += 1
        found = canonical(each)
        if found is None:
            unreadable += 1
        elif found in left_out:
            excluded += 1
        elif found in kept:
            repeated += 1
        else:
            kept[found] = None
    require(len(kept) >= 2, f"{plan.source} has {len(kept)} molecules to train on: give at least 2.")
    return Chosen(tuple(kept), drawn, excluded, unreadable, repeated)


def smiles_of(path: Path) -> Iterator[str]:
    """The SMILES of a CSV with a column `smiles`, or the first word of each line of another file; .gz is unpacked."""
    require(path.is_file(), f"{path} is no file: give one with a SMILES on each line, or a CSV with a column 'smiles'.")
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            if ".csv" in path.suffixes[-2:]:
                rows = csv.DictReader(file)
                require("smiles" in (rows.fieldnames or ()), f"{path} has no column 'smiles': rename its column.")
                yield from (row["smiles"] or "" for row in rows)
            else:
                yield from (words[0] for line in file if (words := line.split()))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read ({error}): give a text file, or one packed by gzip.") from error


def described(smiles: Sequence[str]) -> PackedDataset:
    """Molecules with their descriptors as targets [M, C]; the last ones validate."""
    molecules, reasons = read_molecules(smiles, "molecule", MOST_ATOMS)
    rows = [row for row, each in enumerate(molecules) if each is not None]
    require(len(rows) >= 2, f"No two molecules can be read: {reasons[0] if reasons else 'there are none'}")
    values = torch.from_numpy(descriptors([smiles[row] for row in rows]))
    validated = min(VALIDATED, len(rows) // 10 or 1)
    train = len(rows) - validated
    packed = pack_molecules([each for each in molecules if each is not None], standardised(values, train))
    numbers = torch.arange(len(rows))
    return replace(packed, train=numbers[:train], val=numbers[train:], test=numbers[:0])


def standardised(values: Tensor, train: int) -> Tensor:
    """Descriptors [M, C] in standard deviations of the first `train` rows, clipped; NaN stays NaN."""
    return fitted(values[:train]).standardise(values).clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)
