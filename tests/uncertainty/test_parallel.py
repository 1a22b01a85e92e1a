"""Chunks of molecules, by this process or by several; also covers `ckgconv.cli.predict_table`."""

import csv
import os
import signal
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import pytest
from dying_worker import DEADLY, lengths

from ckgconv import InputError, Predictor
from ckgconv.cli import predict_table
from ckgconv.data.table_stream import Chunk
from ckgconv.uncertainty import parallel
from ckgconv.uncertainty.asked_columns import Asked, handed
from ckgconv.uncertainty.parallel import Opening, Rows, predict_chunk, predict_chunks

OPENING = Opening(("zinc",), device="cpu")
SMILES = ["CCO", "nonsense", "c1ccccc1", "", "CCN", "CCS", "[U]"]


@pytest.fixture(scope="module")
def zinc():
    return OPENING.open()


def test_several_processes_predict_as_one_and_keep_the_order(zinc):
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


def test_rows_of_a_killed_process_are_predicted_again(zinc):
    """A real SIGKILL of every process, while chunks are under way."""
    smiles = [["C" * (place % 20 + 1) + "NO"[chunk % 2] for place in range(40)] for chunk in range(20)]
    chunks = [Rows(each, [""] * len(each)) for each in smiles]
    expected = [predict_chunk(zinc, False, rows) for rows in chunks]
    found = predict_chunks(OPENING, zinc, iter(chunks), 2)
    seen = [next(found)]
    for process in active_children():
        os.kill(process.pid, signal.SIGKILL)
    seen += found
    assert len(seen) == len(chunks)
    for one, other in zip(seen, expected, strict=True):
        assert one["reason"] == other["reason"]
        assert one["prediction"] == pytest.approx(other["prediction"], abs=1e-4)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_molecule_that_no_process_survives_has_a_reason(zinc, monkeypatch, workers):
    monkeypatch.setattr(parallel, "_predict_here", lengths)
    chunks = [Rows(["C" * (place + 1)] * 3, [""] * 3) for place in range(8)]
    chunks[2] = Rows(["CC", "CCC", DEADLY, "CCCC"], ["", "given", "", ""])
    found = list(predict_chunks(OPENING, zinc, iter(chunks), workers))
    lengths_found = [each["prediction"] for each in found]
    assert lengths_found == [[1] * 3, [2] * 3, [2, 3, None, 4], *([place + 1] * 3 for place in range(3, 8))]
    assert found[2]["reason"] == ["", "given", parallel.KILLED, ""]


def test_on_a_gpu_one_worker_is_this_process(zinc, monkeypatch):
    class Device:
        type = "cuda"

    monkeypatch.setattr(parallel, "predict_chunk", lambda predictor, embed, rows: rows)
    monkeypatch.setattr(type(zinc.run.learner.fabric), "device", Device())
    assert list(predict_chunks(OPENING, zinc, iter(["rows"]), 1)) == ["rows"]


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
    asked = Asked(0, {"ph": 1}, frozenset(), ())
    rows = handed(chunk, asked)
    assert rows.smiles == ["CCO", "CC", "C"]
    assert str(rows.features) == "[[1.5], [nan], [nan]]"
    assert [bool(reason) for reason in rows.reasons] == [False, False, True]
    assert handed(chunk, replace(asked, features={})).features is None
    assert handed(Chunk([["C", "1,5"]], [""]), replace(asked, commas=frozenset(["ph"]))).features == [[1.5]]
    assert str(rows.part(1, 3).features) == "[[nan], [nan]]"


def test_workers_are_for_long_tables(zinc):
    class Table:
        total = predict_table.ROWS_FOR_WORKERS

    assert predict_table.default_workers(zinc, Table()) == predict_table.cores()
    Table.total -= 1
    assert predict_table.default_workers(zinc, Table()) == 1
    assert parallel.CHUNK * parallel.AHEAD < 10_000
