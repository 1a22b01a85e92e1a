"""A table as text: columns by name, rows of cells, and where each row is in its file.

Numbers are read where a column is asked for as numbers, so that columns nobody uses may hold anything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ckgconv.checks import InputError, require
from ckgconv.data.decimals import has_decimal_commas, parsed
from ckgconv.data.door import LARGEST

MISSING = {"", "nan", "na", "n/a", "null", "none"}
NAMES_SHOWN, LETTERS_SHOWN = 20, 80
# Short rows are filled up to the header, so that a small file with a wide header has many cells.
MOST_CELLS = 2 * 10**7


@dataclass(frozen=True)
class Table:
    """The cells of a table, as text."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]  # where each row is in the file, from 1
    place: str = "Line"  # what these numbers count: lines, records or rows
    reasons: tuple[str, ...] = ()  # why the file itself holds no molecule in a row, "" elsewhere; empty: nowhere

    def column(self, name: str) -> list[str]:
        if name not in self.columns:
            raise InputError(f"{self.path} has no column '{printable(name)}': its columns are {self.names()}.")
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def names(self) -> str:
        """The names of the columns, for a message."""
        shown = ", ".join(map(printable, self.columns[:NAMES_SHOWN]))
        return shown + (f" and {len(self.columns) - NAMES_SHOWN:,} others" if len(self.columns) > NAMES_SHOWN else "")

    def numbers(self, name: str) -> list[float]:
        """A column as floats; NaN where a cell is empty or says that the value is missing."""
        commas = self.has_decimal_commas(name)
        cells = zip(self.lines, self.column(name), strict=True)
        return [self.number(text, name, line, commas) for line, text in cells]

    def has_decimal_commas(self, name: str) -> bool:
        """Whether the numbers of a column are written as 1,5; refused where that cannot be told."""
        return has_decimal_commas(self.column(name), f"Column '{printable(name)}' of {self.path}")

    def number(self, text: str, column: str, line: int, commas: bool = False) -> float:
        """The number in a cell of a column, which `has_decimal_commas` or not; NaN where it is missing."""
        if is_missing(text):
            return math.nan
        where = f"{self.place} {line} of {self.path} has '{printable(text)}' in column '{printable(column)}'"
        try:
            value = parsed(text, commas)
        except ValueError as error:
            comma = " with a decimal point" if "," in text and not commas else ""
            raise InputError(f"{where}: give a number{comma}, or leave the cell empty.") from error
        require(abs(value) <= LARGEST, f"{where}: give a finite number, at most {LARGEST:g} in size.")
        return value


def named_column(columns: Sequence[str], name: str, path: Path) -> str:
    """The column of a name, or the only one that has it in other letters of upper or lower case; or the name itself."""
    if name in columns:
        return name
    found = [each for each in columns if each.strip().casefold() == name.strip().casefold()]
    shown = ", ".join(map(printable, found))
    require(len(found) < 2, f"{path} has no column '{printable(name)}', but {shown}: name one of them with --smiles.")
    return found[0] if found else name


def is_missing(text: str) -> bool:
    """Whether a cell says that a value is unknown."""
    return text.strip().lower() in MISSING


def check_cells(path: Path, columns: int, rows: int) -> None:
    """Refuse a table too large for memory."""
    cells = columns * rows
    require(cells <= MOST_CELLS, f"{path} has {cells:,} cells or more: give at most {MOST_CELLS:,}, in several files.")


def check_names(path: Path, columns: tuple[str, ...]) -> None:
    """Refuse two columns of one name."""
    seen: set[str] = set()
    for name in columns:
        require(name not in seen, f"{path} has two columns '{printable(name)}': give each column a name of its own.")
        seen.add(name)


def printable(text: str) -> str:
    """Text for a message: control characters, which a terminal would obey, are escaped, and long text is cut."""
    cut = text if len(text) <= LETTERS_SHOWN else text[: LETTERS_SHOWN - 1] + "…"
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut)
