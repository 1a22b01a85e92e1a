"""A set of explained molecules as a folder of tables and drawings.

molecules.csv       prediction, baseline, sum and residual of each row of the input, or the reason why it has none
contributions.csv   one line per atom and bond; where the network reads them, of all descriptors and of each own column
substructures.csv   mean contribution of each fragment, with its s.d. and the number of occurrences
substructures.svg   those that raise and lower predictions most
molecule-N.svg      drawings of the first molecules, N the row of the input, from 1
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ckgconv.checks import InputError, require
from ckgconv.data.spreadsheet import as_text
from ckgconv.explanation.drawing import draw
from ckgconv.explanation.explainer import Explainer, Explanation
from ckgconv.explanation.substructures import Kind, Substructure, draw_substructures, substructures
from ckgconv.files import write_text, write_whole

MOST_DRAWN = 20


@dataclass(frozen=True)
class Explained:
    """Molecules of a table, in order."""

    smiles: list[str]
    found: list[Explanation | None]  # None where a molecule cannot be predicted
    reasons: list[str]

    @property
    def known(self) -> list[Explanation]:
        return [each for each in self.found if each is not None]


def explain_all(
    explainer: Explainer,
    smiles: Sequence[str],
    tick: Callable[[int], None] = lambda count: None,
    features: Sequence[Sequence[float]] | None = None,
    known: Sequence[str] = (),
) -> Explained:
    """Explain molecules one after the other; `tick` is called after each.

    `features` has a row for each molecule, as `Explainer` takes it. `known` has reasons why rows hold no molecule, ""
    where they do.
    """
    found: list[Explanation | None] = []
    reasons = []
    beside = zip(features or [()] * len(smiles), known or [""] * len(smiles), strict=True)
    for each, (values, reason) in zip(smiles, beside, strict=True):
        try:
            require(not reason, reason)
            found.append(explainer(each, values))
            reasons.append("")
        except InputError as error:
            found.append(None)
            reasons.append(str(error))
        tick(1)
    return Explained(list(smiles), found, reasons)


def write_explained(folder: Path, explained: Explained, kind: Kind = "brics", least: int = 1) -> list[Substructure]:
    """Write the folder; returns the substructures."""
    require(not folder.exists() or folder.is_dir(), f"{folder} is a file: give a folder for the explanations.")
    folder.mkdir(parents=True, exist_ok=True)
    known = explained.known
    found = substructures(known, kind, least)
    _write(folder / "molecules.csv", MOLECULES, [_molecule(explained, row) for row in range(len(explained.smiles))])
    _write(folder / "contributions.csv", CONTRIBUTIONS, _contributions(explained))
    lines = [[each.name, f"{each.mean:.6g}", f"{each.std:.6g}", each.n, each.molecules, each.example] for each in found]
    _write(folder / "substructures.csv", SUBSTRUCTURES, lines)
    if known and found:
        write_text(folder / "substructures.svg", draw_substructures(found, known[0].unit))
    for row, each in enumerate(explained.found[:MOST_DRAWN]):
        if each is not None:
            write_text(folder / f"molecule-{row + 1}.svg", draw(each))
    return found


MOLECULES = ("smiles", "prediction", "baseline", "sum of contributions", "residual", "adds up", "reason")
CONTRIBUTIONS = ("row", "smiles", "what", "number", "atom", "other atom", "contribution")
SUBSTRUCTURES = ("substructure", "mean contribution", "std", "n", "molecules", "example")


def _molecule(explained: Explained, row: int) -> list[object]:
    found, smiles = explained.found[row], explained.smiles[row]
    if found is None:
        return [smiles, "", "", "", "", "", explained.reasons[row]]
    values = [f"{value:.6g}" for value in (found.prediction, found.baseline, found.total, found.residual)]
    return [smiles, *values, "yes" if found.adds_up else "no", ""]


def _contributions(explained: Explained) -> list[list[object]]:
    lines: list[list[object]] = []
    for row, found in enumerate(explained.found):
        if found is None:
            continue
        start: list[object] = [row + 1, found.smiles]
        lines += [[*start, "atom", atom, atom, "", f"{value:.6g}"] for atom, value in enumerate(found.atoms)]
        bonds = enumerate(zip(found.ends, found.bonds, strict=True))
        lines += [[*start, "bond", bond, i, j, f"{value:.6g}"] for bond, ((i, j), value) in bonds]
        if found.descriptors:
            lines.append([*start, "descriptors", "", "", "", f"{found.descriptors:.6g}"])
        lines += [[*start, f"column {name}", "", "", "", f"{value:.6g}"] for name, value in found.features.items()]
    return lines


def _write(path: Path, header: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    def write(part: Path) -> None:
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows([as_text(str(cell)) for cell in line] for line in lines)

    write_whole(path, write)
