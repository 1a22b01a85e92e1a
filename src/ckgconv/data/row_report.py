"""What the rows of a table hold, told to the person who trains on them; the rows stay as they are.

    reason       why a row is not used
    duplicate    the first row with the same molecule (the same canonical SMILES)
    conflict     a duplicate whose known targets are not those of the first row
    leak         a molecule whose rows are in different splits
    fragments    several molecules in one row: a salt, a solvate or a mixture
    isotopes     atoms of a stated isotope
    charged      a net charge
    stereo       defined stereochemistry; undefined_stereo: centres or double bonds whose configuration is not stated

rows.csv in the folder of a run has a line for every row, rows.json the counts.
"""

import csv
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ckgconv.data.molecule_table import LoadedTable
from ckgconv.data.molecules import parse_smiles, rdkit_chem
from ckgconv.data.splits import SPLITS
from ckgconv.data.table import Table, printable
from ckgconv.files import valid_json, write_text, write_whole
from ckgconv.recipe import DataRecipe

FLAGS = ("duplicate", "conflict", "leak", "fragments", "isotopes", "charged", "stereo", "undefined_stereo")
WORDS = {
    "fragments": "several fragments (salts, mixtures)",
    "isotopes": "isotopes",
    "charged": "a net charge",
    "stereo": "defined stereochemistry",
    "undefined_stereo": "undefined stereochemistry",
}


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    line: int
    split: str  # "" where it is in none
    flags: tuple[str, ...]
    duplicate_of: int | None  # line of the first row with the same molecule
    reason: str  # why it is not used; "" where it is


@dataclass(frozen=True)
class RowReport:
    """All rows of a table, in order."""

    path: str
    rows: tuple[Row, ...]
    commas: tuple[str, ...] = ()  # columns that were read with decimal commas
    constant: tuple[str, ...] = ()  # targets of numbers with one known value in the training split

    @property
    def counts(self) -> dict[str, int]:
        """Rows, those that are not used, those of each flag, and those of each split."""
        flags = Counter(flag for row in self.rows for flag in row.flags)
        splits = Counter(row.split for row in self.rows)
        unused = sum(1 for row in self.rows if row.reason)
        return (
            {"rows": len(self.rows), "unused": unused}
            | {flag: flags[flag] for flag in FLAGS}
            | {split: splits[split] for split in SPLITS}
        )

    def warnings(self) -> list[str]:
        """Sentences about rows that need a decision."""
        counts, found = self.counts, []
        if counts["unused"]:
            found.append(
                f"{counts['unused']} of {counts['rows']} rows of {self.path} have no valid SMILES or no target and are "
                f"left out."
            )
        if counts["duplicate"]:
            conflicts = f", {counts['conflict']} of them with other targets" if counts["conflict"] else ""
            one = counts["duplicate"] == 1
            found.append(
                f"{counts['duplicate']} {'row' if one else 'rows'} of {self.path} {'has' if one else 'have'} the "
                f"molecule of an earlier row{conflicts}: all are used."
            )
        if counts["leak"]:
            found.append(
                f"{counts['leak']} rows of {self.path} have a molecule that is in several splits, so that what is "
                f"validated or tested is known from training: use --split random_with_repeated_smiles."
            )
        for name in self.constant:
            found.append(
                f"Target '{printable(name)}' has one value in all training rows that know it, so that it is not "
                f"learned: use another split, or leave it out."
            )
        return found

    def notes(self) -> list[str]:
        """Sentences about what the molecules have."""
        counts = self.counts
        parts = [f"{words}: {counts[flag]:,}" for flag, words in WORDS.items() if counts[flag]]
        found = [
            f"Column '{printable(name)}' of {self.path} has decimal commas: 1,5 is read as 1.5." for name in self.commas
        ]
        return found + ([f"Rows with {', '.join(parts)}; molecules are used as they are."] if parts else [])

    def write(self, folder: Path) -> None:
        """rows.csv and rows.json."""
        write_whole(folder / "rows.csv", self._write_csv)
        write_text(folder / "rows.json", valid_json(self.counts, indent=1))

    def _write_csv(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["line", "split", "flags", "duplicate_of", "reason"])
            for row in self.rows:
                writer.writerow([row.line, row.split, " ".join(row.flags), row.duplicate_of or "", row.reason])


def row_report(loaded: LoadedTable, recipe: DataRecipe) -> RowReport:
    """The report of a table that was loaded by a recipe."""
    splits = _splits(loaded)
    texts = loaded.table.column(recipe.smiles)
    # Copies, since looking for stereochemistry marks the atoms.
    molecules = {row: rdkit_chem().Mol(parse_smiles(texts[row], recipe.most_atoms)) for row in sorted(splits)}
    by_molecule: dict[str, list[int]] = defaultdict(list)
    for row, molecule in molecules.items():
        by_molecule[str(rdkit_chem().MolToSmiles(molecule))].append(row)
    first = {row: rows[0] for rows in by_molecule.values() for row in rows}
    leaking = {row for rows in by_molecule.values() if len({splits[row] for row in rows}) > 1 for row in rows}
    found = []
    for row, (line, reason) in enumerate(zip(loaded.table.lines, loaded.reasons, strict=True)):
        if row not in splits:
            found.append(Row(line, "", (), None, reason))
            continue
        flags = ["duplicate"] * (first[row] != row) + ["leak"] * (row in leaking)
        flags += ["conflict"] * _differs(loaded.y[first[row]], loaded.y[row])
        flags += _of_molecule(molecules[row])
        again = None if first[row] == row else loaded.table.lines[first[row]]
        found.append(Row(line, splits[row], tuple(flag for flag in FLAGS if flag in flags), again, reason))
    return RowReport(str(loaded.table.path), tuple(found), _commas(loaded.table, recipe), _constant(loaded, recipe))


def _number_targets(recipe: DataRecipe) -> list[tuple[str, int]]:
    """Targets that are no classes, each with its place among the columns of y."""
    classes = recipe.classes or ((),) * len(recipe.targets)
    widths = [max(1, len(names)) for names in classes]
    starts = [sum(widths[:place]) for place in range(len(widths))]
    pairs = zip(recipe.targets, classes, starts, strict=True)
    return [(name, start) for name, names, start in pairs if not names]


def _commas(table: Table, recipe: DataRecipe) -> tuple[str, ...]:
    columns = [*(name for name, _ in _number_targets(recipe)), *recipe.features, recipe.weight_column]
    return tuple(name for name in columns if name and table.has_decimal_commas(name))


def _constant(loaded: LoadedTable, recipe: DataRecipe) -> tuple[str, ...]:
    y = loaded.y[[loaded.rows[graph] for graph in loaded.dataset.train.tolist()]]
    columns = [(name, y[:, place]) for name, place in _number_targets(recipe)]
    return tuple(name for name, column in columns if len(column[column.isfinite()].unique()) == 1)


def _splits(loaded: LoadedTable) -> dict[int, str]:
    """The split of each row of the table that is in the data set; "" where it is in none."""
    found = dict.fromkeys(loaded.rows, "")
    for name in SPLITS:
        for graph in loaded.dataset.split(name).tolist():
            found[loaded.rows[graph]] = name
    return found


def _differs(one: Tensor, other: Tensor) -> bool:
    if not one.is_floating_point():
        return bool(one != other) and min(int(one), int(other)) >= 0
    known = one.isfinite() & other.isfinite()
    return not torch.equal(one[known], other[known])


def _of_molecule(molecule: Any) -> list[str]:
    chem = rdkit_chem()
    stereo = [str(each.specified) for each in chem.FindPotentialStereo(molecule)]
    present = {
        "fragments": len(chem.GetMolFrags(molecule)) > 1,
        "isotopes": any(atom.GetIsotope() for atom in molecule.GetAtoms()),
        "charged": chem.GetFormalCharge(molecule) != 0,
        "stereo": "Specified" in stereo,
        "undefined_stereo": "Unspecified" in stereo,
    }
    return [flag for flag, has in present.items() if has]
