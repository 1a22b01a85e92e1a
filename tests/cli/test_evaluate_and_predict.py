"""`evaluate` and `predict` with several runs; covers `ckgconv.cli.predictions`."""

import csv
import json
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from ckgconv import open_run
from ckgconv.engine import ensemble, predict_split

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "data.limit=6", "training.epochs=1"]


def rows_of(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


@pytest.fixture
def runs(ckgconv):
    """Two runs of CKGCN and one of GRIT on the same few molecules."""
    train = ["--set", *SMALL, "--device", "cpu", "--json", "--out"]
    assert ckgconv("train", "zinc", "--seed", "0", "1", *train, "ckgcn")[0] == 0
    assert ckgconv("train", "zinc-grit", *train, "grit")[0] == 0
    return ["ckgcn/seed0", "ckgcn/seed1", "grit"]


def test_the_mean_of_different_models_is_evaluated(ckgconv, runs):
    code, out, err = ckgconv("evaluate", *runs, "--device", "cpu")
    assert code == 0, err
    assert "by the mean of 3 runs" in out
    assert "by their median" in out.replace("\n", " ")
    assert "members alone" in out
    code, out, _ = ckgconv("evaluate", *runs, "--device", "cpu", "--json", "--split", "val")
    found = json.loads(out)
    assert found["runs"] == runs
    assert (found["split"], found["metric"], len(found["members"])) == ("val", "mae", 3)
    for run, value in zip(runs, found["members"], strict=True):
        alone = json.loads(ckgconv("evaluate", run, "--device", "cpu", "--json", "--split", "val")[1])
        assert alone == {"run": run, "split": "val", "metric": "mae", "value": pytest.approx(value, rel=1e-5)}
    assert found["value"] <= max(found["members"])
    parameters = [json.loads(Path(run, "record.json").read_text())["parameters"] for run in runs]
    assert found["cost"]["parameters"] == sum(parameters)


def test_molecules_have_mean_deviation_and_median(ckgconv, runs):
    Path("m.csv").write_text("id,smiles\n1,CCO\n2,nonsense\n3,c1ccccc1\n")
    alone = []
    for run in runs:
        assert ckgconv("predict", run, "m.csv", "-o", "one.csv", "--device", "cpu")[0] == 0
        alone.append([float(row["prediction"] or "nan") for row in rows_of("one.csv")])
    assert Path("one.csv").read_text().splitlines()[0] == "id,smiles,prediction,reason"
    code, out, err = ckgconv("predict", *runs, "m.csv", "-o", "all.csv", "--device", "cpu", "--json")
    assert code == 0, err
    assert json.loads(out) == {"out": "all.csv", "rows": 3, "predicted": 2, "invalid": 1}
    header = Path("all.csv").read_text().splitlines()[0]
    assert header == "id,smiles,prediction,prediction_deviation,prediction_median,reason"
    rows = rows_of("all.csv")
    for place in (0, 2):
        values = sorted(run[place] for run in alone)
        mean = sum(values) / 3
        assert float(rows[place]["prediction"]) == pytest.approx(mean)
        assert float(rows[place]["prediction_median"]) == pytest.approx(values[1])
        deviation = (sum((value - mean) ** 2 for value in values) / 2) ** 0.5
        assert float(rows[place]["prediction_deviation"]) == pytest.approx(deviation)
    assert [rows[1][name] for name in ("prediction", "prediction_deviation", "prediction_median")] == ["", "", ""]
    assert rows[1]["reason"]


@contextmanager
def stdout_in(path):
    """Standard output in a file, as in `> out.csv`."""
    kept = os.dup(1)
    with path.open("w") as out:
        os.dup2(out.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_standard_output_holds_the_table_alone(ckgconv, form):
    Path("m.csv").write_text("id,smiles\n1,CCO\n2,nonsense\n")
    with stdout_in(Path("out.csv")):
        code, out, err = ckgconv("predict", "zinc", "m.csv", "-o", "/dev/stdout", "--device", "cpu", *form)
    assert (code, out) == (0, ""), err
    assert "/dev/stdout" in err
    assert [row["id"] for row in rows_of("out.csv")] == ["1", "2"]


def test_nodes_of_a_data_set_have_classes_and_probabilities(ckgconv):
    settings = ["--set", "training.epochs=1", "model.width=8", "model.blocks=1", "training.warmup_epochs=0"]
    assert ckgconv("train", "large-sbm", "--seed", "0", "1", *settings, "--device", "cpu", "--out", "sbm")[0] == 0
    runs = ["sbm/seed0", "sbm/seed1"]
    code, _, err = ckgconv("predict", *runs, "large-sbm", "-o", "nodes.csv", "--device", "cpu")
    assert code == 0, err
    first = rows_of("nodes.csv")[0]
    classes = sum(name.endswith("_deviation") for name in first)
    means = [float(first[f"prediction{place}"]) for place in range(classes)]
    assert sum(means) == pytest.approx(1)
    assert int(first["class"]) == max(range(classes), key=means.__getitem__)
    assert {"graph", "node", "prediction0_deviation", "prediction0_median"} <= set(first)


def test_several_target_columns(ckgconv):
    lines = [f"{'C' * (length % 9 + 1)},{length % 9},{length % 2}" for length in range(24)]
    Path("my.csv").write_text("\n".join(["smiles,a,b", *lines]) + "\n")
    settings = ["model.width=8", "model.blocks=1", "model.steps=2", "training.epochs=1", "training.warmup_epochs=0"]
    train = ["train", "my.csv", "--target", "a", "b", "--seed", "0", "1", "--set", *settings, "--out", "two"]
    assert ckgconv(*train, "--device", "cpu")[0] == 0
    assert ckgconv("predict", "two/seed0", "two/seed1", "my.csv", "-o", "p.csv", "--device", "cpu")[0] == 0
    assert Path("p.csv").read_text().splitlines()[0] == (
        "smiles,a,b,a_predicted,b_predicted,a_deviation,b_deviation,a_median,b_median,similarity,nearest,outside,reason"
    )
    code, out, err = ckgconv("evaluate", "two/seed0", "two/seed1", "--split", "train", "--device", "cpu")
    assert code == 0, err
    assert "MAE" in out
    assert "balanced accuracy" in out  # of b, which is a label
    one = json.loads(ckgconv("evaluate", "two/seed0", "--device", "cpu", "--json")[1])
    assert {name: next(iter(scores)) for name, scores in one["targets"].items()} == {"a": "mae", "b": "auroc"}


def test_a_split_is_predicted_once_however_much_is_judged(ckgconv, monkeypatch):
    lines = [f"{'C' * (row % 9 + 1)}O,{row % 9},{row % 2}" for row in range(40)]
    Path("my.csv").write_text("\n".join(["smiles,a,b", *lines]) + "\n")
    settings = ["model.width=8", "model.blocks=1", "model.steps=2", "training.epochs=1", "training.warmup_epochs=0"]
    train = ["train", "my.csv", "--target", "a", "b", "--ensemble-size", "2", "--set", *settings, "--out", "pair"]
    assert ckgconv(*train, "--no-report", "--device", "cpu")[0] == 0
    asked = []
    predict = predict_split.predict_split
    monkeypatch.setattr(ensemble, "predict_split", lambda *given: asked.append(1) or predict(*given))
    found = json.loads(ckgconv("evaluate", "pair", "--device", "cpu", "--json")[1])
    assert len(asked) == 2
    assert {"coverage", "targets"} <= set(found)
    for member, value in enumerate(found["members"]):
        asked.clear()
        alone = json.loads(ckgconv("evaluate", f"pair/member{member}", "--device", "cpu", "--json")[1])
        assert len(asked) == 1
        run = open_run(f"pair/member{member}", "cpu")
        assert alone["value"] == pytest.approx(value)
        assert alone["value"] == pytest.approx(run.evaluate("test"), rel=1e-6)
        assert alone["value"] == pytest.approx(run.record.best.test, rel=1e-6)


def test_wrong_input_is_a_sentence(ckgconv, runs):
    other = ["data.limit=7", *(each for each in SMALL if "limit" not in each)]
    assert ckgconv("train", "zinc", "--set", *other, "--device", "cpu", "--out", "other")[0] == 0
    Path("m.csv").write_text("smiles\nCCO\n")
    Path("wide.csv").write_text("smiles\nCCO\n", encoding="utf-16")
    for arguments, sentence in (
        (
            ["evaluate", runs[0], "other"],
            "was not trained on the data and splits of ckgcn/seed0: it has 21 graphs",
        ),
        (["predict", runs[0], "other", "m.csv"], "Give runs that were trained on the same data."),
        (
            ["evaluate", runs[0], "nowhere"],
            "nowhere is not a folder: give the folder of a run, or a trained network",
        ),
        (["evaluate", runs[0], f"./{runs[0]}"], "was given twice: give each run once."),
        (["evaluate", *runs, "--split", "tst"], "There is no split 'tst': choose one of train, val, test."),
        (["predict", runs[0], runs[1]], "ckgcn/seed1 is a run, but the last argument is the data to predict"),
        (["predict", *runs, "m.csv", "--embed"], "--embed was given with 3 runs"),
        (["predict", *runs, "m.csv", "-o", "m.csv"], "m.csv is the input: choose another file with -o."),
        *(
            (["predict", *runs, "m.csv", "-o", f"p{end}"], "would hold a CSV")
            for end in (".parquet", ".XLSX", ".sdf.gz")
        ),
        (["predict", *runs, "missing.csv"], "missing.csv does not exist"),
        (["predict", *runs, "wide.csv"], "wide.csv is text in UTF-16: save it as a CSV in UTF-8."),
        *(
            (["predict", *runs, "m.csv", "-o", f"{runs[0]}/{name}"], "is a file of a run, which would be lost")
            for name in ("record.json", "best.safetensors", "metrics.csv", "checkpoints/000000.json")
            if Path(runs[0], name).exists()
        ),
    ):
        code, _, err = ckgconv(*arguments)
        assert code == 2, arguments
        assert sentence in err
        assert "Traceback" not in err
