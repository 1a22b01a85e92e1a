"""Readers of tables by their endings, right and wrong.

Covers `ckgconv.data.delimited`, `ckgconv.data.smi`, `ckgconv.data.sdf`, `ckgconv.data.parquet`,
`ckgconv.data.text_file`, `ckgconv.data.table` and `ckgconv.data.molecule_table`.
"""

import builtins
import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rdkit import Chem

from ckgconv import InputError
from ckgconv.data import load, table, text_file
from ckgconv.data.table_stream import stream_table
from ckgconv.data.tables import is_table, read_table, stem
from ckgconv.recipe import DataRecipe

COLUMNS, ROWS = ("smiles", "log P"), (("CCO", "1.5"), ("c1ccccc1", "-2"))


def text(separator):
    return "".join(separator.join(row) + "\n" for row in (COLUMNS, *ROWS))


@pytest.mark.parametrize(
    ("name", "separator"), [("t.csv", ","), ("t.csv", ";"), ("t.csv", "\t"), ("t.tsv", "\t"), ("t.CSV", ",")]
)
@pytest.mark.parametrize("packed", [False, True])
def test_separators_and_gzip(tmp_path, name, separator, packed):
    path = tmp_path / (name + ".gz" * packed)
    content = b"\xef\xbb\xbf" + text(separator).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    found = read_table(path)
    assert (found.columns, found.rows, found.lines) == (COLUMNS, ROWS, (2, 3))
    assert found.numbers("log P") == [1.5, -2.0]
    assert (is_table(path), stem(path)) == (True, "t")


def test_the_separator_is_the_one_that_fits_the_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("smiles;log P (mol,l)\nCCO;1\nCC;2\n")
    assert read_table(path).columns == ("smiles", "log P (mol,l)")
    path.write_text('smiles,"a;b",y\nCCO,x,1\n')
    assert read_table(path).columns == ("smiles", "a;b", "y")
    for unclear in ("a;b,c\n1;2,3\n4;5,6\n", "a;b,c\n1\n"):
        path.write_text(unclear)
        with pytest.raises(InputError, match=r"a comma and a semicolon in its header.*do not tell"):
            read_table(path)
    path.write_text("smiles;y\nCCO;1,5\n")
    assert read_table(path).numbers("y") == [1.5]


def test_smi(tmp_path):
    path = tmp_path / "t.smi"
    path.write_text("CCO ethanol, pure\n\nCC\tethane\nC\n")
    found = read_table(path)
    assert (found.columns, found.lines) == (("smiles", "name"), (1, 3, 4))
    assert found.rows == (("CCO", "ethanol, pure"), ("CC", "ethane"), ("C", ""))
    path.write_text("SMILES y\nCCO 1\nCC 2\n")
    assert read_table(path).numbers("y") == [1, 2]
    for wrong in ("", "smiles y\n"):
        path.write_text(wrong)
        with pytest.raises(InputError, match=r"is empty|no rows"):
            read_table(path)


def sdf(path, smiles, properties):
    with Chem.SDWriter(str(path)) as writer:
        for each, values in zip(smiles, properties, strict=True):
            molecule = Chem.MolFromSmiles(each)
            for name, value in values.items():
                molecule.SetProp(name, value)
            writer.write(molecule)
    return path


def test_sdf_has_its_properties_as_columns_and_a_reason_for_what_is_no_molecule(tmp_path):
    path = sdf(tmp_path / "t.sdf", ["C[C@H](N)O", "c1ccccc1", "C" * 30], [{"log P": "1", "x": "a"}, {"log P": "2"}, {}])
    path.write_text("nonsense\n$$$$\n" + path.read_text())
    found = read_table(path, most_atoms=20)
    assert found.columns == ("smiles", "name", "log P", "x")
    assert found.column("smiles") == ["", "C[C@H](N)O", "c1ccccc1", ""]
    assert found.column("log P") == ["", "1", "2", ""]
    assert found.place == "Record"
    assert [bool(reason) for reason in found.reasons] == [True, False, False, True]
    assert "30 atoms, more than the 20 allowed" in found.reasons[3]
    rows = [f"{'C' * (1 + number)}" for number in range(12)]
    path = sdf(tmp_path / "u.sdf", rows, [{"y": str(number)} for number in range(12)])
    assert load(DataRecipe(str(path), targets=("y",), split="random")).num_graphs == 12
    (tmp_path / "v.sdf.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_table(tmp_path / "v.sdf.gz").rows == read_table(path).rows
    path.write_text("\n\n")
    with pytest.raises(InputError, match="is empty"):
        read_table(path)


def test_parquet(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    values = {
        "smiles": ["CCO", None, "CCO"],
        "y": [0.1, None, 1e-7],
        "toxic": [True, False, None],
        "bits": [[1], [2], [3]],
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
    pq.write_table(pa.table(values), path)
    found = read_table(path)
    assert found.columns == ("smiles", "y", "toxic", "kind")
    assert found.rows == (("CCO", "0.1", "1", "a"), ("", "", "0", "b"), ("CCO", "1e-07", "", "a"))
    assert found.lines == (1, 2, 3)
    monkeypatch.setattr(table, "MOST_CELLS", 5)
    with pytest.raises(InputError, match="has 12 cells"):
        read_table(path)
    for content in (b"", b"PAR1", path.read_bytes()[:-40]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="cannot be read as parquet"):
            read_table(path)
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="pip install pyarrow"):
        read_table(path)


def test_what_unpacks_to_too_much_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"smiles,y\n" + b"C,1\n" * 10_000, mtime=0))
    monkeypatch.setattr(text_file, "MOST_BYTES", 5_000)
    with pytest.raises(InputError, match="unpacks to more than 5,000 bytes"):
        read_table(path)
    plain = tmp_path / "t.csv"
    plain.write_bytes(b"smiles,y\n" + b"C,1\n" * 2_000)
    with pytest.raises(InputError, match="has 8,009 bytes"):
        read_table(plain)
    monkeypatch.setattr(text_file, "MOST_LETTERS", 100)
    plain.write_text("smiles,y\n" + "C" * 200 + ",1\n")
    with pytest.raises(InputError, match=r"Line 2 .* more than 100 letters"):
        read_table(plain)


@pytest.mark.parametrize("content", [b"", b"not gzip", gzip.compress(b"smiles,y\nC,1\n", mtime=0)[:-12]])
def test_a_damaged_gz_is_refused(tmp_path, content):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as a CSV|is empty"):
        read_table(path)


def test_other_endings_are_no_tables(tmp_path):
    assert not any(is_table(name) for name in ("t.txt", "t.gz", "t.npz", "t", "t.parquet.gz", "t.json.gz"))
    with pytest.raises(InputError, match=r"is no table: give a file that ends in .csv"):
        read_table(tmp_path / "t.txt")


def test_a_gz_of_lines_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_file, "LARGE", 2**20)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"smiles,y\nC,1\n" + b"\n" * 2**22, mtime=0))
    for read in (read_table, stream_table):
        with pytest.raises(InputError, match=r"unpacks from [0-9,]* to more than 1,048,576 bytes"):
            read(path)


def test_cells_are_counted_while_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("smiles,y\n" + "C,1\n" * 5_000)
    monkeypatch.setattr(table, "MOST_CELLS", 100)
    with pytest.raises(InputError, match="has 1,998 cells or more: give at most 100"):
        read_table(path)
