"""Parquet, through pyarrow (`pip install "ckgconv[tables]"`): columns of numbers, texts and truth values as text.

Counts are compared with the limits before a row is read, and rows are read in small batches whose size is counted.
Columns of lists, structures and bytes are not read.
"""

from pathlib import Path
from typing import Any

from ckgconv.checks import InputError, require
from ckgconv.data.table import Table, check_cells, check_names
from ckgconv.files import explaining_file_errors

BATCH_ROWS = 1024
MOST_BYTES = 2**30


def read_parquet(path: Path) -> Table:
    """A table of all rows; their numbers count from 1."""
    arrow = _pyarrow()
    with explaining_file_errors():
        require(not path.exists() or path.is_file(), f"{path} is a folder or a device: give a parquet file.")
    columns: dict[str, list[str]] = {}
    try:
        with arrow.parquet.ParquetFile(path, read_dictionary=_texts(arrow, path)) as file:
            schema = file.schema_arrow
            plain = [field.name for field in schema if _is_plain(arrow, field.type)]
            check_names(path, tuple(schema.names))
            require(bool(plain), f"{path} has no column of numbers or texts: give a column of SMILES.")
            rows = file.metadata.num_rows
            require(rows > 0, f"{path} has no rows: give one molecule per row.")
            check_cells(path, len(plain), rows)
            groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
            _check_size(path, sum(group.total_byte_size for group in groups))
            columns = {name: [] for name in plain}
            size = 0
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=plain, use_threads=False):
                size += batch.nbytes
                _check_size(path, size)
                for name in plain:
                    columns[name] += _cells(batch.column(name))
    except (OSError, EOFError, ValueError, MemoryError, OverflowError, KeyError, arrow.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        kind = type(error).__name__
        raise InputError(
            f"{path} cannot be read as parquet ({kind}): write it again with pyarrow or pandas."
        ) from error
    require(
        all(len(column) == rows for column in columns.values()),
        f"{path} announces {rows:,} rows and holds others: write it again with pyarrow or pandas.",
    )
    cells = tuple(zip(*columns.values(), strict=True))
    return Table(path, tuple(columns), cells, tuple(range(1, len(cells) + 1)), "Row")


def _check_size(path: Path, size: int) -> None:
    require(size <= MOST_BYTES, f"{path} unpacks to {size:,} bytes: give at most {MOST_BYTES:,}, in several files.")


def _texts(arrow: Any, path: Path) -> list[str]:
    """Columns of text, read dictionary-encoded so that each text is in memory once."""
    kinds = (arrow.types.is_string, arrow.types.is_large_string)
    return [field.name for field in arrow.parquet.read_schema(path) if any(test(field.type) for test in kinds)]


def _cells(values: Any) -> list[str]:
    if not hasattr(values, "dictionary"):
        return [_text(value) for value in values.to_pylist()]
    texts = [_text(value) for value in values.dictionary.to_pylist()]
    return ["" if number is None else texts[number] for number in values.indices.to_pylist()]


def _text(value: Any) -> str:
    """A value as a CSV would have it; repr keeps every digit of a float."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def _is_plain(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    if types.is_dictionary(kind):
        return _is_plain(arrow, kind.value_type)
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
    return any(test(kind) for test in (*tests, types.is_decimal, types.is_null))


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("Reading parquet needs pyarrow: install it with 'pip install pyarrow'.") from error
    return pyarrow
