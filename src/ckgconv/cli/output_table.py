"""The table that predictions are written to, by the ending of its name.

.tsv, .tab       cells between tabs             .parquet, .sdf, .xlsx, …    refused
anything else    CSV, cells between commas      .gz after it                compressed
"""

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from ckgconv.checks import require
from ckgconv.data.delimited import TAB_SUFFIXES, read_delimited
from ckgconv.data.tables import READERS

# Endings of formats that are not written; a CSV under such a name would mislead whatever opens it.
OTHER_FORMATS = {".xlsx", ".xls", ".ods", ".json"} | {
    name for name, reader in READERS.items() if reader is not read_delimited
}


def check_output_table(out: Path) -> None:
    """Refuse a name that promises another format."""
    require(_ending(out) not in OTHER_FORMATS, f"{out} would hold a CSV: let its name end in .csv, .tsv or .csv.gz.")


@contextmanager
def table_writer(part: Path, out: Path) -> Iterator[Any]:
    """A writer of rows into `part`, which is going to be `out`."""
    tabs = _ending(out) in TAB_SUFFIXES
    with part.open("wb") as plain:
        packed = gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if _is_packed(out) else plain
        with TextIOWrapper(packed, encoding="utf-8", newline="") as text:
            yield csv.writer(text, delimiter="\t" if tabs else ",")


def _is_packed(out: Path) -> bool:
    return out.suffix.lower() == ".gz"


def _ending(out: Path) -> str:
    """Without .gz."""
    return (out.with_suffix("") if _is_packed(out) else out).suffix.lower()
