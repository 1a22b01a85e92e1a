"""Chunks of molecules, by this process or by several; also covers `ckgconv.cli.predict_table`."""

import csv
from pathlib import Path

import pytest

from ckgconv import InputError, Predictor
from ckgconv.cli import predict_table
from ckgconv.data.table_stream import Chunk
from ckgconv.uncertainty import parallel
from ckgconv.uncertainty.parallel import Opening, Rows, predict_chunk, predict_chunks

OPENING = Opening(("zinc",), device="cpu")
SMILES = ["CCO", "nonsense", "c1ccccc1", "", "CCN", "CCS", "[U]"]


@pytest.fixture(scope="module")
def zinc():
    return OPENING.open()


def test_several_processes_predict_as_one_and_keep_the_order(zinc):
    """The only test that starts processes."""
    chunks = [Rows(SMILES[:3], ["", "", ""]), Rows(SMILES[3:], ["", "given", "", ""])]
    one, two = (list(predict_chunks(OPENING, zinc, iter(chunks), workers)) for workers in (1, 2))
    assert [list(each) for each in one] == [["prediction", "reason"]] * 2
    assert one[0]["prediction"][1] is None
    assert one[1]["reason"][1] == "given"
    assert one[1]["prediction"][1] is None
    for first, second in zip(one, two, strict=True):
        assert second["reason"] == first["reason"]
        known = [value for value in first["prediction"] if value is not None]
        assert [value for value in second["prediction"] if value is not None] == pytest.approx(known)


def test_a_molecule_that_fails_leaves_the_others(zinc, monkeypatch):
    def fail(self, smiles, tick=None, features=None):
        if "CCN" in smiles:
            raise RuntimeError("no memory")
        return self._predict(smiles, None, features)

    monkeypatch.setattr(Predictor, "predict", fail)
    found = predict_chunk(zinc, False, Rows(SMILES, [""] * len(SMILES)))
    assert found["reason"][4] == "It could not be predicted: no memory"
    assert [value is None for value in found["prediction"]] == [False, True, False, True, True, False, True]


def test_wrong_workers_are_refused(zinc):
    with pytest.raises(InputError, match="The number of workers is 0: give a whole number of at least 1"):
        list(predict_chunks(OPENING, zinc, iter([]), 0))


def test_a_table_is_written_as_it_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(predict_table, "CHUNK", 2)
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id,smiles,reason\n" + "".join(f"=1+{place},{each},old\n" for place, each in enumerate(SMILES)))
    found = predict_table.predict_table(OPENING, path, out, None, 1, quiet=True)
    assert found == {"rows": 7, "predicted": 4, "invalid": 3}
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["id", "smiles", "prediction", "reason"]
    assert [row["smiles"] for row in rows] == SMILES
    assert [bool(row["reason"]) for row in rows] == [False, True, False, True, False, False, True]
    assert rows[0]["id"] == "'=1+0"  # no formula
    assert not list(Path(tmp_path).glob(".*.part"))
    embedding = Opening(("zinc",), device="cpu", embed=True)
    predict_table.predict_table(embedding, path, out, None, 1, quiet=True)
    assert "embedding0" in out.read_text().splitlines()[0]


def test_cells_that_are_no_numbers_are_reasons():
    chunk = Chunk([["CCO", "1.5"], ["CC", ""], ["C", "many"]], ["", "", ""])
    rows = predict_table._handed(chunk, [0, 1])
    assert rows.smiles == ["CCO", "CC", "C"]
    assert str(rows.features) == "[[1.5], [nan], [nan]]"
    assert [bool(reason) for reason in rows.reasons] == [False, False, True]
    assert predict_table._handed(chunk, [0]).features is None
    assert str(rows.part(1, 3).features) == "[[nan], [nan]]"


def test_workers_are_for_long_tables(zinc):
    class Table:
        total = predict_table.ROWS_FOR_WORKERS

    assert predict_table.default_workers(zinc, Table()) == predict_table.cores()
    Table.total -= 1
    assert predict_table.default_workers(zinc, Table()) == 1
    assert parallel.CHUNK * parallel.AHEAD < 10_000
