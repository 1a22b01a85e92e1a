"""SMI: one molecule per line, its SMILES first; what follows is its name, or further columns under a header.

The first line is a header where its first word names a column of SMILES, such as `smiles`.
"""

from pathlib import Path

from ckgconv.checks import require
from ckgconv.data.table import Table, check_cells, check_names
from ckgconv.data.text_file import lines_of, opened

HEADERS = {"smiles", "smi", "smile", "canonical_smiles", "structure", "molecule"}


def read_smi(path: Path) -> Table:
    """A table with the columns smiles and name, or those of the header."""
    with opened(path, "a file of SMILES") as file:
        numbered = [(number, line.strip()) for number, line in enumerate(lines_of(file, path), 1)]
    rows = [(number, line) for number, line in numbered if line]
    require(len(rows) > 0, f"{path} is empty: give one SMILES per line.")
    columns: tuple[str, ...] = ("smiles", "name")
    if rows[0][1].split(maxsplit=1)[0].lower() in HEADERS:
        columns = tuple(rows[0][1].split())
        check_names(path, columns)
        rows = rows[1:]
        require(len(rows) > 0, f"{path} has a header but no rows: give one SMILES per line.")
    check_cells(path, len(columns), len(rows))
    cells = []
    for _, line in rows:
        found = line.split(maxsplit=len(columns) - 1) if len(columns) > 1 else [line]
        cells.append((*found, *[""] * (len(columns) - len(found))))
    return Table(path, columns, tuple(cells), tuple(number for number, _ in rows))
