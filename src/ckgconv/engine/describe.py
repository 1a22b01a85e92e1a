"""Molecules to pretrain on: chosen from a file, with computed properties as targets.

    y = clip((d - mean)/s.d., ±6)     d those of `data.properties`, statistics of the training molecules

Molecules of tables that the network will be judged on are left out, by their canonical SMILES. This needs RDKit and no
GPU, and pretraining a GPU and no RDKit, so what was described can be kept: a packed file, with its counts beside it.

Legend: M molecules, C properties.
"""

import csv
import gzip
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from pydantic import with_config
from torch import Tensor

from ckgconv.checks import InputError, check_choice, check_whole, require
from ckgconv.data import PackedDataset
from ckgconv.data.molecules import MOST_ATOMS, canonical
from ckgconv.data.packed import load_packed, save_packed
from ckgconv.data.properties import PROPERTIES
from ckgconv.data.tables import pack_molecules, read_molecules
from ckgconv.files import check_names_file, read_text, valid_json, write_text
from ckgconv.recipe.format import FORMAT, MOST_SETTINGS, group_of
from ckgconv.recipe.values import KEPT, read
from ckgconv.tasks.scaling import fitted

# Standard deviations; counts of rare fragments lie far beyond, and would decide the loss.
MOST_DEVIATIONS = 6.0
# Of a standard deviation, far below any error; what is rounded takes half the space in a file.
ROUNDING = 2.0**-10
VALIDATED = 2000
MOLECULES = 50_000


@dataclass(frozen=True)
class Selection:
    """Which molecules of a file, how many, and what is computed of them."""

    source: Path
    exclude: Sequence[Path] = ()
    molecules: int = MOLECULES
    seed: int = 0
    properties: str = "descriptors"  # one of `PROPERTIES`


@with_config(KEPT)
@dataclass(frozen=True)
class Counts:
    """How the molecules were chosen."""

    used: int
    drawn: int  # lines looked at, in an order drawn by the seed
    excluded: int  # of these, in a table of the user's
    unreadable: int  # of these, no valid SMILES, or too many atoms
    repeated: int  # of these, seen before
    excluded_by: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.used:,} molecules of {self.drawn:,} drawn: {self.excluded:,} excluded, {self.repeated:,} repeated, "
            f"{self.unreadable:,} unreadable"
        )


@with_config(KEPT)
@dataclass(frozen=True)
class Origin:
    """The file beside a packed one."""

    source: str
    counts: Counts
    properties: str = "descriptors"


@dataclass(frozen=True)
class DescribedMolecules:
    """What a network is pretrained on."""

    data: PackedDataset
    origin: Origin


def describe(selection: Selection) -> DescribedMolecules:
    """The molecules of a selection with their properties."""
    check_choice("--properties", selection.properties, list(PROPERTIES))
    smiles, counts = choose(selection)
    found = described(smiles, selection.properties)
    return DescribedMolecules(found, Origin(selection.source.name, counts, selection.properties))


def save_described(molecules: DescribedMolecules, path: Path) -> None:
    """Write a packed file, and beside it how its molecules were chosen."""
    check_packed_name(path)
    save_packed(molecules.data, path)
    write_text(origin_file(path), valid_json({"format": FORMAT, **asdict(molecules.origin)}))


def load_described(path: Path) -> DescribedMolecules:
    """What `save_described` wrote."""
    beside, remedy = origin_file(path), "write it with the packed file by 'ckgconv data describe'."
    text = read_text(beside, remedy, MOST_SETTINGS)
    try:
        origin = read(group_of(text), Origin)
        check_choice("properties", origin.properties, list(PROPERTIES))
    except InputError as error:
        raise InputError(f"{beside} cannot be used ({str(error).rstrip('.')}): {remedy}") from error
    return DescribedMolecules(load_packed(path), origin)


def check_packed_name(path: Path) -> None:
    """Refuse a folder, and a name by which the file would not be known as a packed one."""
    check_names_file(path)
    require(path.suffix == ".npz", f"{path} is to hold packed molecules: give a name that ends with .npz.")


def origin_file(path: Path) -> Path:
    """Where it is written how the molecules of a packed file were chosen."""
    return path.with_suffix(".origin.json")


def choose(selection: Selection) -> tuple[tuple[str, ...], Counts]:
    """As many distinct SMILES as asked for, in an order drawn by the seed; fewer where the file ends."""
    require(
        selection.molecules >= 2, f"--molecules is {selection.molecules}: give at least 2, to train and to validate."
    )
    check_whole("--seed", selection.seed, 0)  # Python draws the same from -1 as from 1
    lines = list(smiles_of(selection.source))
    random.Random(selection.seed).shuffle(lines)
    left_out = {
        found for path in selection.exclude for each in smiles_of(path) if (found := canonical(each)) is not None
    }
    kept: dict[str, None] = {}
    drawn = excluded = unreadable = repeated = 0
    for each in lines:
        if len(kept) == selection.molecules:
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
    require(len(kept) >= 2, f"{selection.source} has {len(kept)} molecules to train on: give at least 2.")
    tables = tuple(path.name for path in selection.exclude)
    return tuple(kept), Counts(len(kept), drawn, excluded, unreadable, repeated, tables)


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


def described(smiles: Sequence[str], properties: str = "descriptors") -> PackedDataset:
    """Molecules with their properties as targets [M, C]; the last ones validate."""
    molecules, reasons = read_molecules(smiles, "molecule", MOST_ATOMS)
    rows = [row for row, each in enumerate(molecules) if each is not None]
    require(len(rows) >= 2, f"No two molecules can be read: {reasons[0] if reasons else 'there are none'}")
    values = torch.from_numpy(PROPERTIES[properties].values([smiles[row] for row in rows]))
    validated = min(VALIDATED, len(rows) // 10 or 1)
    train = len(rows) - validated
    packed = pack_molecules([each for each in molecules if each is not None], standardised(values, train))
    numbers = torch.arange(len(rows))
    return replace(packed, train=numbers[:train], val=numbers[train:], test=numbers[:0])


def standardised(values: Tensor, train: int) -> Tensor:
    """Properties [M, C] in standard deviations of the first `train` rows, clipped and rounded; NaN stays NaN."""
    deviations = fitted(values[:train]).standardise(values).clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)
    return (deviations / ROUNDING).round() * ROUNDING
