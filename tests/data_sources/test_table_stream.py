"""Tables read a few rows at a time."""

import gzip

import pytest

from ckgconv import InputError
from ckgconv.data.table_stream import MORE_CELLS, OPEN_QUOTE, stream_table
from ckgconv.data.tables import read_table


def rows_of(stream, size=2):
    chunks = list(stream.chunks(size))
    assert all(len(chunk.rows) == len(chunk.reasons) <= size for chunk in chunks)
    return [row for chunk in chunks for row in chunk.rows], [why for chunk in chunks for why in chunk.reasons]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'smiles,y\nCCO,1\n\n"C,C",2\r\nC\n'),
        ("b.csv", "smiles;y\nCCO;1\nCC;2\n"),
        ("c.tsv", "smiles\ty\nCCO\t1\nC\t\n"),
        ("d.smi", "CCO ethanol\nC\n  CC two words \n"),
        ("e.smi", "smiles id\nCCO 1\nCC 2\n"),
        ("f.csv", "smiles\nCCO\nCC\n"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_rows_are_those_of_the_whole_table(tmp_path, name, text, packed):
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    table, stream = read_table(path), stream_table(path)
    rows, reasons = rows_of(stream)
    assert stream.columns == table.columns
    assert [tuple(row) for row in rows] == list(table.rows)
    assert stream.total == len(rows)
    assert not any(reasons)


def test_a_row_that_cannot_be_read_has_a_reason_and_the_next_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'smiles,y\nCCO,1,2\n"CC,1\n\xff\xfe,3\nC,4\n')
    rows, reasons = rows_of(stream_table(path))
    assert rows == [["CCO", "1"], ['"CC,1', ""], ["��", "3"], ["C", "4"]]
    assert reasons == [MORE_CELLS, OPEN_QUOTE, "", ""]


def test_other_tables_are_read_whole(tmp_path):
    path = tmp_path / "a.sdf"
    path.write_text("nonsense\n$$$$\n")
    try:
        stream = stream_table(path)
    except InputError:
        return
    assert rows_of(stream)[1]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "smiles,y\n", "has a header but no rows"),
        ("a.csv", "y,y\n1,2\n", "two columns 'y'"),
        ("a.csv", '"smiles\nC\n', "has a quote that is not closed"),
        ("a.smi", "\n", "is empty"),
        ("a.smi", "smiles\n", "has a header but no rows"),
    ],
)
def test_tables_without_rows_are_refused(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        stream_table(path)


def test_a_column_that_is_missing_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("structure,y\nC,1\n")
    assert stream_table(path).place("y") == 1
    with pytest.raises(InputError, match="has no column 'smiles': its columns are structure, y"):
        stream_table(path).place("smiles")
