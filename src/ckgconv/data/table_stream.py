"""A table read a few rows at a time, so that memory stays the same however long it is.

CSV, TSV and SMI are streamed, plain or as .gz; SDF and parquet are read whole. A row that cannot be read has a reason,
and the rows after it are read all the same.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ckgconv.checks import InputError, require
from ckgconv.data.delimited import MORE_CELLS, TAB_SUFFIXES, read_delimited, separator_of
from ckgconv.data.molecules import MOST_ATOMS
from ckgconv.data.smi import HEADERS, read_smi
from ckgconv.data.table import NAMES_SHOWN, check_names, printable
from ckgconv.data.tables import READERS, ending, read_table
from ckgconv.data.text_file import lines_of, opened

OPEN_QUOTE = "The row has a quote that is not closed."


@dataclass(frozen=True)
class Chunk:
    """Some rows, each with a cell per column, and a reason where a row could not be read."""

    rows: list[list[str]]
    reasons: list[str]


@dataclass(frozen=True)
class TableStream:
    """A table of which the columns and the number of rows are known."""

    path: Path
    columns: tuple[str, ...]
    total: int  # rows

    def place(self, name: str) -> int:
        """The place of a column."""
        if name not in self.columns:
            shown = ", ".join(map(printable, self.columns[:NAMES_SHOWN]))
            more = f" and {len(self.columns) - NAMES_SHOWN:,} others" if len(self.columns) > NAMES_SHOWN else ""
            raise InputError(f"{self.path} has no column '{printable(name)}': its columns are {shown}{more}.")
        return self.columns.index(name)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, `size` at a time."""
        rows = self._rows()
        while part := list(islice(rows, size)):
            yield Chunk([cells for cells, _ in part], [reason for _, reason in part])

    def _rows(self) -> Iterator[tuple[list[str], str]]:
        raise NotImplementedError


@dataclass(frozen=True)
class DelimitedStream(TableStream):
    """CSV or TSV, one row per line."""

    separator: str

    def _rows(self) -> Iterator[tuple[list[str], str]]:
        width = len(self.columns)
        for line in islice(_lines(self.path, "a CSV"), 1, None):
            try:
                (cells,) = csv.reader([line], delimiter=self.separator, strict=True)
            except csv.Error:
                yield [line.strip(), *[""] * (width - 1)], OPEN_QUOTE
                continue
            reason = MORE_CELLS if len(cells) > width else ""
            yield [*cells[:width], *[""] * (width - len(cells))], reason


@dataclass(frozen=True)
class SmiStream(TableStream):
    """SMI, one molecule per line."""

    header: bool

    def _rows(self) -> Iterator[tuple[list[str], str]]:
        width = len(self.columns)
        for line in islice(_lines(self.path, "a file of SMILES"), int(self.header), None):
            cells = line.split(maxsplit=width - 1) if width > 1 else [line.strip()]
            yield [*(cell.strip() for cell in cells), *[""] * (width - len(cells))], ""


@dataclass(frozen=True)
class WholeTable(TableStream):
    """A table that was read at once."""

    cells: tuple[tuple[str, ...], ...]
    known_reasons: tuple[str, ...]

    def _rows(self) -> Iterator[tuple[list[str], str]]:
        reasons = self.known_reasons or ("",) * len(self.cells)
        return ((list(cells), reason) for cells, reason in zip(self.cells, reasons, strict=True))


def stream_table(path: Path, most_atoms: int = MOST_ATOMS) -> TableStream:
    """A table to be read a few rows at a time; its rows are counted first."""
    reader = READERS.get(ending(path))
    if reader is read_smi:
        return _stream_smi(path)
    if reader is not read_delimited:
        table = read_table(path, most_atoms)
        return WholeTable(path, table.columns, len(table.rows), table.rows, table.reasons)
    tabs = any(suffix.lower() in TAB_SUFFIXES for suffix in path.suffixes)
    separator = "\t" if tabs else separator_of(path)
    first = next(_lines(path, "a CSV"), None)
    require(first is not None, f"{path} is empty: give a CSV with a header line and one molecule per line.")
    try:
        (columns,) = csv.reader([first or ""], delimiter=separator, strict=True)
    except csv.Error as error:
        raise InputError(f"The header of {path} has a quote that is not closed: close it.") from error
    check_names(path, tuple(columns))
    rows = _count(path, "a CSV") - 1
    require(rows > 0, f"{path} has a header but no rows: give one molecule per line.")
    return DelimitedStream(path, tuple(columns), rows, separator)


def _stream_smi(path: Path) -> SmiStream:
    first = next(_lines(path, "a file of SMILES"), None)
    require(first is not None, f"{path} is empty: give one SMILES per line.")
    words = (first or "").split()
    header = words[0].lower() in HEADERS
    columns = tuple(words) if header else ("smiles", "name")
    check_names(path, columns)
    rows = _count(path, "a file of SMILES") - int(header)
    require(rows > 0, f"{path} has a header but no rows: give one SMILES per line.")
    return SmiStream(path, columns, rows, header)


def _lines(path: Path, what: str) -> Iterator[str]:
    """Lines that are not empty; bytes that are no UTF-8 become a character that no SMILES has."""
    with opened(path, what, errors="replace") as file:
        for line in lines_of(file, path):
            if line.strip():
                yield line


def _count(path: Path, what: str) -> int:
    return sum(1 for _ in _lines(path, what))
