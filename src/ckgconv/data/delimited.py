"""CSV and TSV: a header line, then one row per line; cells between commas, semicolons or tabs.

The separator is the one in the header. Where the header has several, it is the one by which every one of the first rows
has as many cells as the header; where that leaves none or several, the file is refused.
"""

import csv
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ckgconv.checks import InputError, require
from ckgconv.data.table import Table, check_cells, check_names, printable
from ckgconv.data.text_file import lines_of, opened

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
TAB_SUFFIXES = (".tsv", ".tab")
MORE_CELLS = "The row has more cells than the header: quote cells that contain the separator."
# How many rows are compared to choose a separator.
LOOKED_AT = 20
# How often the size is compared with the limit: a small .gz may hold many rows.
ROWS_BETWEEN_CHECKS = 1000


def read_delimited(path: Path) -> Table:
    """The table of a file in which no row is longer than the header."""
    table = read_every_row(path)
    for line, reason in zip(table.lines, table.reasons, strict=True):
        require(not reason, reason.replace("The row", f"Line {line} of {path}"))
    return replace(table, reasons=())


def read_every_row(path: Path) -> Table:
    """As `read_delimited`, but a row longer than the header keeps its place, with a reason.

    Rows shorter than the header are filled with empty cells. A quoted cell ends on its line: one that goes on is nearly
    always a quote that was never closed, and would swallow the rows up to the next quote.
    """
    tabs = any(suffix.lower() in TAB_SUFFIXES for suffix in path.suffixes)
    lines, numbers = _lines(path, "\t" if tabs else separator_of(path))
    require(len(lines) > 0, f"{path} is empty: give a CSV with a header line and one molecule per line.")
    header, *rows = lines
    require(len(rows) > 0, f"{path} has a header but no rows: give one molecule per line.")
    columns = tuple(header)
    check_names(path, columns)
    width = len(header)
    check_cells(path, width, len(rows))
    reasons = tuple(MORE_CELLS if len(row) > width else "" for row in rows)
    filled = tuple((*row[:width], *[""] * (width - len(row))) for row in rows)
    return Table(path, columns, filled, tuple(numbers[1:]), reasons=reasons)


def separator_of(path: Path) -> str:
    """What stands between the cells of a file."""
    with opened(path, "a CSV", errors="replace") as file:
        first = [line for line in islice(lines_of(file, path), LOOKED_AT) if line.strip("\r\n")]
    widths = {mark: [_cells(line, mark) for line in first] for mark in SEPARATORS}
    in_header = [mark for mark in SEPARATORS if first and widths[mark][0] > 1]
    if len(in_header) <= 1:
        return in_header[0] if in_header else ","
    even = [mark for mark in in_header if len(set(widths[mark])) == 1]
    if len(even) != 1:
        named = " and ".join(SEPARATORS[mark] for mark in in_header)
        raise InputError(
            f"{path} has {named} in its header, and its rows do not tell which of them separates cells: save it with "
            f"one of them, and quote cells that contain it."
        )
    return even[0]


def _cells(line: str, mark: str) -> int:
    """How many cells a line has; 0 where its quotes are wrong."""
    try:
        return sum(len(row) for row in csv.reader([line], delimiter=mark, strict=True))
    except csv.Error:
        return 0


def _lines(path: Path, separator: str) -> tuple[list[list[str]], list[int]]:
    """The cells of all lines that are not empty, and the numbers of these lines."""
    lines, numbers, last = [], [], 0
    with opened(path, "a CSV") as file:
        try:
            reader = csv.reader(lines_of(file, path), delimiter=separator, strict=True)
            for row in reader:
                require(
                    reader.line_num == last + 1,
                    f"Line {last + 1} of {path} has a quoted cell that goes on to line {reader.line_num}: close its "
                    f"quote, or remove the line breaks in it.",
                )
                last = reader.line_num
                if row:
                    lines.append(row)
                    numbers.append(last)
                    if len(lines) % ROWS_BETWEEN_CHECKS == 0:
                        check_cells(path, len(lines[0]), len(lines) - 1)
        except csv.Error as error:
            found = printable(str(error))
            raise InputError(
                f"{path} cannot be read as a CSV ({found} in line {last + 1}): give a text file with a header, each "
                f"quote closed."
            ) from error
    return lines, numbers
