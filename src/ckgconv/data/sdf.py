"""SDF: records of a molecule and its properties; molecules become SMILES, properties become columns.

    column `smiles`    the SMILES that RDKit writes for the structure, with its stereochemistry, hydrogens implicit
    column `name`      the first line of the record
    other columns      the properties, in the order of their first occurrence; empty where a record lacks one

A record that RDKit cannot read, or that has too many atoms, keeps its row: it has a reason in place of a molecule.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ckgconv.checks import require
from ckgconv.data.molecules import HYDROGEN, MOST_ATOMS, rdkit_chem
from ckgconv.data.table import Table, check_cells, check_names
from ckgconv.data.text_file import lines_of, opened

END = "$$$$"
# In V3000 each atom and each bond has a line of about 40 letters.
LETTERS_PER_ATOM = 400


def read_sdf(path: Path, most_atoms: int = MOST_ATOMS) -> Table:
    """A table of all records; their numbers count from 1."""
    names: dict[str, int] = {"smiles": 0, "name": 1}
    found: list[dict[str, str]] = []
    reasons: list[str] = []
    with opened(path, "an SDF") as file:
        for record in _records(lines_of(file, path)):
            block, properties = _parts(record)
            smiles, reason = _smiles(block, most_atoms)
            for name in properties:
                names.setdefault(name, len(names))
            check_cells(path, len(names), len(found) + 1)
            found.append(properties | {"smiles": smiles, "name": block[0].strip() if block else ""})
            reasons.append(reason)
    require(len(found) > 0, f"{path} is empty: give an SDF with one record per molecule.")
    columns = tuple(names)
    check_names(path, columns)
    rows = tuple(tuple(record.get(name, "") for name in columns) for record in found)
    return Table(path, columns, rows, tuple(range(1, len(rows) + 1)), "Record", tuple(reasons))


def _records(lines: Iterator[str]) -> Iterator[list[str]]:
    """The lines of each record; blank lines after the last one are ignored."""
    record: list[str] = []
    for line in lines:
        text = line.rstrip("\r\n")
        if text.startswith(END):
            yield record
            record = []
        else:
            record.append(text)
    if any(line.strip() for line in record):
        yield record


def _parts(record: list[str]) -> tuple[list[str], dict[str, str]]:
    """Lines of the structure, and values of the properties: `> <NAME>`, the value, a blank line."""
    end = next((place for place, line in enumerate(record) if line.startswith("M  END")), None)
    first = next((place for place, line in enumerate(record) if line.startswith(">")), len(record))
    cut = first if end is None else end + 1
    properties: dict[str, str] = {}
    name: str | None = None
    for line in record[cut:]:
        if line.startswith(">") and "<" in line and ">" in line[line.index("<") :]:
            name = line[line.index("<") + 1 : line.rindex(">")]
            properties.setdefault(name, "")
        elif not line.strip():
            name = None
        elif name is not None:
            properties[name] = f"{properties[name]} {line}".strip()
    return record[:cut], {key: value for key, value in properties.items() if key not in ("smiles", "name")}


def _smiles(block: list[str], most_atoms: int) -> tuple[str, str]:
    """The SMILES of a structure and "", or "" and why there is none."""
    chem: Any = rdkit_chem()
    text = "\n".join(block)
    if len(text) > LETTERS_PER_ATOM * most_atoms + 1000:
        return "", f"The record has {len(text):,} letters, too many for the {most_atoms:,} atoms allowed."
    # Counted before rdkit looks for rings and stereo, which takes long.
    molecule = chem.MolFromMolBlock(text, sanitize=False, removeHs=False)
    if molecule is None:
        return "", "The record is no structure that RDKit can read."
    heavy = sum(1 for atom in molecule.GetAtoms() if atom.GetAtomicNum() != HYDROGEN)
    if heavy > most_atoms:
        return "", f"The record has {heavy:,} atoms, more than the {most_atoms:,} allowed (data.most_atoms)."
    molecule = chem.MolFromMolBlock(text)
    if molecule is None or molecule.GetNumAtoms() == 0:
        return "", "The record has no atom." if molecule is not None else "RDKit refuses the structure of the record."
    return str(chem.MolToSmiles(molecule)), ""
