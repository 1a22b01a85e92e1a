"""Covers `ckgconv.studies.printed`."""

import json

import pytest

from ckgconv import InputError
from ckgconv.studies import Options
from ckgconv.studies.significance import significance


def write_run(folder, seed, test, name="zinc", metric="mae", data="zinc", paper=(0.059, 0.003)):
    folder.mkdir(parents=True)
    recipe = {"name": name, "data": {"name": data}, "paper_test": list(paper)}
    record = {"recipe": recipe, "seed": seed, "metric": metric, "best": {"epoch": 0, "val": test, "test": test}}
    record["epochs"] = [{"epoch": 0, "train_loss": test, "val": test, "lr": 0.001, "seconds": 1.0}]
    (folder / "record.json").write_text(json.dumps(record))
    return folder


def runs(tmp_path, name, values, **options):
    return tuple(write_run(tmp_path / f"{name}{i}", i, value, name, **options) for i, value in enumerate(values))


def test_the_papers_statements_follow_from_its_numbers():
    report = significance(Options())
    assert report.title == "14 of the paper's 14 statements about significance follow from its printed numbers"
    assert {row[-1] for row in report.rows} == {"yes", "–"}
    by_names = {(test["data"], test["better"], test["other"]): test["student"] for test in report.values["tests"]}
    assert by_names["ZINC", "CKGCN", "GRIT"]["two_sided"] == pytest.approx(1.0)
    assert by_names["PATTERN", "CKGCN", "GRIT"]["two_sided"] < 1e-4


def test_runs_against_runs(tmp_path):
    ours, theirs = runs(tmp_path, "a", [0.05, 0.06, 0.055]), runs(tmp_path, "b", [0.08, 0.085, 0.09])
    report = significance(Options(runs=ours, against=(theirs[0] / "record.json", *theirs[1:])))
    assert report.title.startswith("Better mae: a, significantly (p = ")
    assert report.seeds == (0, 1, 2)
    assert report.values["runs"]["values"] == (0.05, 0.06, 0.055)


def test_runs_against_the_paper(tmp_path):
    report = significance(Options(runs=runs(tmp_path, "zinc", [0.061, 0.058, 0.060, 0.059])))
    assert "Better mae: the paper, not significantly" in report.title


def test_refusals(tmp_path):
    ours = runs(tmp_path, "a", [1.0, 2.0], paper=())
    with pytest.raises(InputError, match="The paper has no number for a"):
        significance(Options(runs=ours))
    with pytest.raises(InputError, match="--against was given without --runs"):
        significance(Options(against=ours))
    with pytest.raises(InputError, match="differ in their metric"):
        significance(Options(runs=ours, against=runs(tmp_path, "b", [1.0, 2.0], metric="accuracy")))
    with pytest.raises(InputError, match="A seed occurs twice"):
        significance(Options(runs=(ours[0], ours[0])))
    with pytest.raises(InputError, match="of different recipes"):
        significance(Options(runs=(ours[0], tmp_path / "b1")))
    with pytest.raises(InputError, match="cannot be read"):
        significance(Options(runs=(tmp_path / "nowhere",)))
    (tmp_path / "odd.json").write_text("[]")
    with pytest.raises(InputError, match="is not the record of a run"):
        significance(Options(runs=(tmp_path / "odd.json",)))
    unfinished = write_run(tmp_path / "unfinished", 9, None)
    with pytest.raises(InputError, match="holds no test metric yet"):
        significance(Options(runs=(unfinished,)))
