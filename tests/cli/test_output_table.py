"""The ending of `predict -o` says how the table is written."""

import csv
import gzip
from pathlib import Path

import pytest

from ckgconv.checks import InputError
from ckgconv.cli.output_table import check_output_table, table_writer


@pytest.mark.parametrize(("name", "mark"), [("p.tsv", "\t"), ("p.csv.gz", ","), ("p.TAB.GZ", "\t"), ("p.txt", ",")])
def test_the_name_of_the_output_says_how_it_is_written(ckgconv, name, mark):
    Path("m.csv").write_text("id,smiles\n1,CCO\n2,nonsense\n")
    assert ckgconv("predict", "zinc", "m.csv", "-o", name, "--device", "cpu")[0] == 0
    content = Path(name).read_bytes()
    if name.lower().endswith(".gz"):
        assert content[4:8] == bytes(4)  # no time in it: the same predictions are the same file
        content = gzip.decompress(content)
    rows = list(csv.reader(content.decode().splitlines(), delimiter=mark))
    assert [row[:2] for row in rows] == [["id", "smiles"], ["1", "CCO"], ["2", "nonsense"]]


def written_until_an_error(part):
    with table_writer(part, Path("p.csv.gz")) as writer:
        writer.writerow(["a"])
        raise InputError("stop")


def test_an_error_leaves_a_file_that_can_be_unpacked(tmp_path):
    with pytest.raises(InputError, match="stop"):
        written_until_an_error(tmp_path / "part")
    assert gzip.decompress((tmp_path / "part").read_bytes()) == b"a\r\n"


@pytest.mark.parametrize("name", ["p.parquet", "p.pq.gz", "p.xlsx", "p.SDF", "p.smi"])
def test_names_of_other_formats_are_refused(name):
    with pytest.raises(InputError, match="would hold a CSV"):
        check_output_table(Path(name))
