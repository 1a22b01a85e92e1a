"""Covers `ckgconv.studies.kept_predictions`."""

import importlib
import json
import shutil
from dataclasses import replace

import pytest
from records import write_run

from ckgconv import InputError, open_runs, recipe, train
from ckgconv.studies import Options, conduct, kept_predictions, study, write_page
from ckgconv.studies.ensembles import DRAWS, default_runs, distinct_choices, drawn_choices, ensembles

module = importlib.import_module("ckgconv.studies.ensembles")


def small(name, limit=5):
    chosen = recipe(name)
    heads = {"heads": 2} if name.endswith("grit") else {}
    return replace(
        chosen,
        data=replace(chosen.data, limit=limit),
        model=replace(chosen.model, width=8, blocks=1, steps=3, **heads),
        training=replace(chosen.training, epochs=1, warmup_epochs=0),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Five runs of CKGCN and two of GRIT."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seeds in (("zinc", 5), ("zinc-grit", 2)):
        for seed in range(seeds):
            train(small(name), seed, folder=folder / f"{name}{seed}", device="cpu")
    return folder


def options(trained, tmp_path, ckgcn=5, grit=2):
    return Options(
        ckgcn=tuple(trained / f"zinc{seed}" for seed in range(ckgcn)),
        grit=tuple(trained / f"zinc-grit{seed}" for seed in range(grit)),
        device="cpu",
        out=tmp_path / "page",
    )


def test_compositions_are_those_of_the_paper(trained, tmp_path):
    report = ensembles(options(trained, tmp_path))
    found = report.values["ensembles"]
    assert {name: each["members"] for name, each in found.items()} == {
        "GRIT ensemble": {"grit": 2},
        "CKGCN ensemble": {"ckgcn": 4},
        "mixed ensemble": {"grit": 2, "ckgcn": 2},
    }
    assert [len(each["distinct"]) for each in found.values()] == [1, 5, 10]
    assert [len(each["drawn"]) for each in found.values()] == [DRAWS] * 3
    assert [row[1] for row in report.rows] == ["0.054 ± 0.001", "0.054 ± 0.002", "0.051 ± 0.001"]
    assert report.rows[0][0] == "GRIT ensemble, only 2 GRIT"
    assert report.rows[2][0] == "mixed ensemble, 2 GRIT + 2 CKGCN"
    assert "GRIT: 2 runs; 2 more would make an ensemble of 4. CKGCN: 5 runs." in report.notes[0]
    assert "yet" not in report.title


def test_values_are_those_of_ensembles(trained, tmp_path):
    chosen = options(trained, tmp_path, ckgcn=4)
    report = ensembles(chosen)
    expected = open_runs(chosen.ckgcn, device="cpu").evaluate()
    assert report.values["ensembles"]["CKGCN ensemble"]["distinct"] == (pytest.approx(expected.value),)
    assert tuple(report.values["runs"]["ckgcn"].values()) == pytest.approx(expected.members)
    mixed = open_runs([*chosen.grit, *chosen.ckgcn[:2]], device="cpu").evaluate()
    assert report.values["ensembles"]["mixed ensemble"]["distinct"][0] == pytest.approx(mixed.value)
    assert report.rows[2][-1] == mixed.cost.parameters


def test_each_run_predicts_once(trained, tmp_path, monkeypatch):
    chosen = options(trained, tmp_path)
    first = ensembles(chosen)
    files = sorted((tmp_path / "page" / "predictions").iterdir())
    assert len(files) == 7

    def refuse(*given, **more):
        raise AssertionError

    opened = kept_predictions.open_run
    monkeypatch.setattr(kept_predictions, "open_run", refuse)
    assert ensembles(chosen).values == first.values
    files[0].write_bytes(b"damaged")
    monkeypatch.setattr(kept_predictions, "open_run", opened)
    assert ensembles(chosen).values == first.values


@pytest.mark.parametrize(
    ("ckgcn", "grit", "absent"),
    [(1, 0, "no GRIT ensemble and no mixed ensemble yet"), (0, 1, "no CKGCN ensemble and no mixed ensemble yet")],
)
def test_one_run_of_one_kind_is_enough(trained, tmp_path, ckgcn, grit, absent):
    report = ensembles(options(trained, tmp_path, ckgcn, grit))
    assert absent in report.title
    assert [row[2] is None for row in report.rows].count(True) == 2
    assert all(row[3] is None for row in report.rows)  # nothing to draw from


def test_one_run_of_each_kind(trained, tmp_path):
    report = ensembles(options(trained, tmp_path, 1, 1))
    assert report.rows[2][0] == "mixed ensemble, only 1 GRIT + 1 CKGCN"
    assert report.rows[2][2] is not None


def test_the_page_is_written(trained, tmp_path):
    chosen = options(trained, tmp_path)
    report, provenance = conduct(study("ensembles"), chosen, ["study", "ensembles"])
    write_page(tmp_path / "page", report, provenance)
    names = sorted(path.name for path in (tmp_path / "page").iterdir())
    assert names == ["README.md", "figure.png", "predictions", "table.json"]
    assert json.loads((tmp_path / "page" / "table.json").read_text())["seeds"] == [0, 1, 2, 3, 4]


def test_choices():
    assert distinct_choices([4], [4]) == [((0, 1, 2, 3),)]
    assert len(distinct_choices([3, 4], [2, 2])) == 18
    many = distinct_choices([20, 20], [2, 2])
    assert len(many) == DRAWS
    assert all(len(set(numbers)) == 2 for choice in many for numbers in choice)
    drawn = drawn_choices([3], [4])
    assert len(drawn) == DRAWS
    assert {number for ((*numbers,),) in drawn for number in numbers} == {0, 1, 2}


def test_default_runs_are_unchanged_recipes_with_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RUNS", tmp_path / "results")
    assert default_runs() == {"grit": (), "ckgcn": ()}
    with pytest.raises(InputError, match="No run of zinc or zinc-grit with its weights is under"):
        ensembles(Options())
    for name in ("a", "b"):
        write_run(tmp_path / "results" / name, 0, 0.06)  # copies of one run
    (tmp_path / "results" / "b" / "best.safetensors").write_bytes(b"")
    write_run(tmp_path / "results" / "grit", 0, 0.06, recipe("zinc-grit"))
    (tmp_path / "results" / "grit" / "best.safetensors").write_bytes(b"")
    short = small("zinc")
    write_run(tmp_path / "results" / "short", 0, 0.06, short)
    (tmp_path / "results" / "short" / "best.safetensors").write_bytes(b"")
    found = default_runs()
    assert found == {"grit": (tmp_path / "results" / "grit",), "ckgcn": (tmp_path / "results" / "b",)}


def test_wrong_input_is_a_sentence(trained, tmp_path):
    one, grit = trained / "zinc0", trained / "zinc-grit0"
    for given, sentence in (
        ({"ckgcn": (grit,)}, "was given with --ckgcn, but its model is of kind 'grit'"),
        ({"ckgcn": (one, one)}, "was given twice"),
        ({"ckgcn": (tmp_path / "nowhere",)}, "nowhere is not a folder"),
    ):
        with pytest.raises(InputError, match=sentence):
            ensembles(Options(**given, device="cpu", out=tmp_path))
    bare = shutil.copytree(one, tmp_path / "bare")
    (bare / "best.safetensors").unlink()
    with pytest.raises(InputError, match="holds a record but no weights"):
        ensembles(Options(ckgcn=(bare,), out=tmp_path))
    record = json.loads((bare / "record.json").read_text())
    record["best"]["test"] = None
    (bare / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="is not finished: finish it with --resume"):
        ensembles(Options(ckgcn=(bare,), out=tmp_path))
    train(small("zinc", limit=4), folder=tmp_path / "other", device="cpu")
    with pytest.raises(InputError, match="was not tested on the same targets as"):
        ensembles(Options(ckgcn=(one, tmp_path / "other"), device="cpu", out=tmp_path))
    by_rmse = replace(small("zinc"), training=replace(small("zinc").training, metric="rmse"))
    train(by_rmse, folder=tmp_path / "rmse", device="cpu")
    with pytest.raises(InputError, match=r"judged by mae, but .* by rmse"):
        ensembles(Options(ckgcn=(one, tmp_path / "rmse"), device="cpu", out=tmp_path))
