"""`ckgconv report`, and the report that `train` writes of a table; covers `ckgconv.cli.report_options`."""

import json
from pathlib import Path

import pytest

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "training.epochs=1", "training.warmup_epochs=0"]


@pytest.fixture
def table():
    Path("m.csv").write_text("smiles,y\n" + "".join(f"{'C' * count}O,{count}\n" for count in range(1, 13)))
    return ["m.csv", "--target", "y", "--set", *SMALL, "--device", "cpu", "--out"]


def test_training_writes_a_report_which_can_be_written_again(ckgconv, with_reports, table, monkeypatch):
    code, out, err = ckgconv("train", *table, "run")
    assert code == 0, err
    assert "report: run/report.html" in out
    first = Path("run/report.html").read_text()
    assert "ckgconv report run" in first
    Path("run/report.html").unlink()
    assert ckgconv("report", "run", "--device", "cpu")[0] == 0
    assert Path("run/report.html").read_text() == first
    found = json.loads(ckgconv("report", "run", "-o", "other.html", "--json")[1])
    assert found == {"report": "other.html"}
    assert Path("other.html").exists()
    code, _, err = ckgconv("report", "run", "-o", "m.csv")
    assert (code, "m.csv is no .html, and would be replaced" in err) == (2, True)
    Path("m.csv").unlink()
    code, _, err = ckgconv("report", "run")
    assert (code, "m.csv" in err) == (2, True)


def test_a_report_that_fails_leaves_the_run(ckgconv, with_reports, table, monkeypatch):
    def fail(runs, path):
        raise ValueError("no font")

    monkeypatch.setattr("ckgconv.cli.report_options.write_report", fail)
    code, out, _ = ckgconv("train", *table, "run")
    assert code == 0
    assert "was not written (no font)" in out
    assert ckgconv("train", *table, "other", "--no-report", "--json")[0] == 0
    assert not Path("other/report.html").exists()


def test_what_is_no_run_is_refused(ckgconv):
    code, _, err = ckgconv("report", "missing")
    assert (code, "not a folder" in err) == (2, True)
