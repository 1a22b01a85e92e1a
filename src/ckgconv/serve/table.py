"""A CSV in, the same CSV with predictions out, portion by portion.

Columns are those of `ckgconv predict`: every row is kept, in order, with a reason where nothing was predicted, and text
that a spreadsheet would compute is marked as text.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ckgconv.checks import InputError, require
from ckgconv.data.delimited import read_every_row
from ckgconv.data.spreadsheet import as_text
from ckgconv.data.table import Table
from ckgconv.data.table_stream import WholeTable
from ckgconv.serve.pool import Row
from ckgconv.uncertainty.asked_columns import asked_columns, handed
from ckgconv.uncertainty.parallel import Rows

# What messages call the file, whatever its name was.
UPLOAD = "upload.csv"


def read_upload(content: bytes, most_rows: int) -> Table:
    """The table of an uploaded file; raises InputError with a sentence that names no path."""
    with TemporaryDirectory(prefix="ckgconv-") as folder:
        path = Path(folder) / UPLOAD
        path.write_bytes(content)
        try:
            table = read_every_row(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), "The file")) from error
    count = len(table.rows)
    require(count <= most_rows, f"The file has {count:,} rows: send at most {most_rows:,} at once.")
    return replace(table, path=Path("The file"))


def asked_rows(table: Table, column: str, features: Sequence[str]) -> Rows:
    """What the network reads of a table: SMILES, values of own columns, and reasons where a cell is no number."""
    whole = WholeTable(table.path, table.columns, len(table.rows), table.rows, table.reasons)
    asked = asked_columns(whole, column, features)
    (chunk,) = whole.chunks(len(table.rows))
    rows = handed(chunk, asked)
    # JSON between processes has no NaN.
    values = (
        None if rows.features is None else [[None if each != each else each for each in row] for row in rows.features]
    )
    return replace(rows, features=values)  # type: ignore[arg-type]


def with_reasons(portions: Iterator[list[Row]], reasons: Sequence[str]) -> Iterator[list[Row]]:
    """The portions, with the reasons of rows that hold no molecule in place of their predictions."""
    known = iter(reasons)
    for portion in portions:
        yield [{"reason": reason} if (reason := next(known)) else row for row in portion]


def written(table: Table, columns: Sequence[str], portions: Iterator[list[Row]]) -> Iterator[str]:
    """The lines of the CSV with columns of predictions; one of the file that has the same name is replaced."""
    kept = [place for place, name in enumerate(table.columns) if name not in columns]
    yield _lines([[*(table.columns[place] for place in kept), *columns]])
    rows = iter(table.rows)
    for portion in portions:
        given = [next(rows) for _ in portion]
        pairs = zip(given, portion, strict=True)
        yield _lines(
            [[*(cells[place] for place in kept), *(_cell(row.get(name)) for name in columns)] for cells, row in pairs]
        )


def _lines(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(map(as_text, row) for row in rows)
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)
