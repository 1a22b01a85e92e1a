"""The commands as a person types them, right and wrong.

Covers `ckgconv.cli.bench`, `ckgconv.cli.evaluate`, `ckgconv.cli.predict`, `ckgconv.cli.watch`,
`ckgconv.cli.table_options`, `ckgconv.cli.train_jobs`, `ckgconv.cli.train_report`, `ckgconv.engine.predict_molecules`,
`ckgconv.engine.bench` and `ckgconv.engine.tensorboard`.
"""

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from ckgconv.cli import repeat_options
from ckgconv.cli.curve import sparkline
from ckgconv.data import save_packed, zinc
from ckgconv.engine import checkpoint

SMALL = ["model.width=8", "model.blocks=2", "model.steps=3", "data.limit=12", "training.epochs=2"]


def table(path, rows=30):
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "smiles", "y", "toxic"])
        for length in range(rows):
            writer.writerow([f"m{length}", "C" * (length % 9 + 1) + "O" * (length % 2), length % 9 + 0.25, length % 2])
    return path


def test_train_evaluate_predict_and_repeat(ckgconv, tmp_path):
    code, out, _ = ckgconv("train", "zinc", "--set", *SMALL, "--json", "--device", "cpu")
    assert code == 0
    result = json.loads(out)
    assert result["run"] == "runs/zinc-seed0"
    for name in ("recipe.json", "record.json", "metrics.csv", "curve.png", "best.safetensors", "best.json"):
        assert (tmp_path / "runs" / "zinc-seed0" / name).exists()
    code, out, _ = ckgconv("evaluate", "runs/zinc-seed0", "--json")
    assert json.loads(out)["value"] == pytest.approx(result["best"]["test"], rel=1e-6)
    code, out, _ = ckgconv("evaluate", "runs/zinc-seed0", "--split", "val")
    assert out.startswith("val mae ")
    code, out, _ = ckgconv("train", "runs/zinc-seed0/recipe.json", "--out", "again", "--json")
    assert json.loads(out)["best"] == result["best"]
    (tmp_path / "m.csv").write_text("id,smiles\n1,CCO\n2,nonsense\n3,C[Si](C)(C)C\n4,\n5,c1ccccc1\n")
    code, out, _ = ckgconv("predict", "runs/zinc-seed0", "m.csv", "-o", "out.csv", "--embed")
    assert code == 0
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert [bool(row["prediction"]) for row in rows] == [True, False, False, False, True]
    assert [bool(row["reason"]) for row in rows] == [False, True, True, True, False]
    assert all(math.isfinite(float(rows[0][f"embedding{place}"])) for place in range(8))


def test_train_on_a_csv_and_predict(ckgconv, tmp_path):
    table("my.csv")
    settings = ["model.width=8", "model.blocks=2", "model.steps=3", "training.epochs=3"]
    code, out, err = ckgconv("train", "my.csv", "--target", "y", "--set", *settings, "--json", "--device", "cpu")
    assert code == 0, err
    assert json.loads(out)["metric"] == "mae"
    assert 0 < json.loads(out)["mean_predictor"] < 10
    code, out, _ = ckgconv("predict", "runs/my-seed0", "my.csv", "-o", "p.csv", "--json")
    assert json.loads(out) == {"out": "p.csv", "rows": 30, "predicted": 30, "invalid": 0}
    rows = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    assert abs(sum(float(row["y_predicted"]) for row in rows) / 30 - 4.25) < 20
    code, out, err = ckgconv("train", "my.csv", "--target", "toxic", "--set", *settings, "--out", "toxic", "--json")
    assert code == 0, err
    assert json.loads(out)["metric"] == "auroc"
    ckgconv("predict", "toxic", "my.csv", "-o", "t.csv")
    labels = list(csv.DictReader(Path("t.csv").read_text().splitlines()))
    assert all(0 < float(row["toxic_predicted"]) < 1 for row in labels)
    code, out, err = ckgconv("train", "my.csv", "--target", "y", "toxic", "--set", *settings, "--out", "two", "--json")
    assert code == 0, err


def test_a_saved_recipe_repeats_and_resumes_its_own_run(ckgconv):
    _, out, _ = ckgconv("train", "zinc", "--seed", "5", "--set", *SMALL, "--json", "--precision", "64", "--out", "five")
    first = json.loads(out)
    code, out, _ = ckgconv("train", "five/recipe.json", "--out", "again", "--json")
    assert (code, json.loads(out)["best"], json.loads(out)["seed"]) == (0, first["best"], 5)
    code, out, _ = ckgconv("train", "five/recipe.json", "--resume", "--json")
    assert (code, json.loads(out)["run"], json.loads(out)["best"]) == (0, "five", first["best"])
    code, _, err = ckgconv("train", "five/recipe.json", "--resume", "--seed", "3", "--out", "five")
    assert (code, "with seed 5, not 3" in err) == (2, True)
    code, _, err = ckgconv("train", "five/recipe.json", "--resume", "--precision", "32")
    assert (code, "with precision 64, not 32" in err) == (2, True)
    code, out, _ = ckgconv("info", "five/recipe.json", "--json")
    assert json.loads(out)["recipe"] == "zinc"
    Path("many/seed1").mkdir(parents=True)
    Path("many/seed1/file").write_text("")
    code, _, err = ckgconv("train", "zinc", "--seed", "0", "1", "--set", *SMALL, "--out", "many")
    assert code == 2
    assert not Path("many/seed0").exists()  # refused before the first seed is trained


def test_rows_left_out_are_reported(ckgconv):
    table("my.csv")
    Path("my.csv").write_text(Path("my.csv").read_text() + "bad,xx,1,0\n")
    settings = ["model.width=8", "model.blocks=1", "model.steps=3", "training.epochs=1"]
    code, _, err = ckgconv("train", "my.csv", "--target", "y", "--set", *settings, "--json")
    assert code == 0
    assert "1 of 31 rows" in err


def test_several_seeds(ckgconv):
    code, out, _ = ckgconv("train", "zinc", "--seed", "0", "1", "--set", *SMALL, "--json", "--out", "many")
    assert code == 0
    assert [run["run"] for run in json.loads(out)] == ["many/seed0", "many/seed1"]
    code, out, _ = ckgconv("train", "zinc", "--seed", "2", "3", "--set", *SMALL)
    assert "over 2 seeds" in out
    assert "±" in out


def test_report_shows_the_papers_number_and_the_curve(ckgconv):
    code, out, _ = ckgconv("train", "zinc", "--set", *SMALL, "--device", "cpu")
    assert code == 0
    assert "always the training mean: test mae" in out
    assert "paper, its full recipe: test mae 0.0590 ± 0.0030" in out
    assert any(bar in out for bar in "▁█")


def test_sparkline():
    assert sparkline([0.0, 1.0, 0.5]) == "▁█▅"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert len(sparkline([float(place) for place in range(2000)])) <= 60


def test_options_with_several_values():
    assert repeat_options(["train", "x", "--seed", "0", "1", "--set", "a=1", "b=2", "--json"]) == [
        *("train", "x", "--seed", "0", "--seed", "1", "--set", "a=1", "--set", "b=2", "--json")
    ]


def test_data_commands(ckgconv, tmp_path):
    code, out, _ = ckgconv("data", "list")
    assert code == 0
    assert "in the package" in out
    code, out, _ = ckgconv("data", "list", "--json")
    assert json.loads(out)["zinc"]["source"] == "in the package"
    code, out, _ = ckgconv("data", "info", "zinc", "--json")
    counts = json.loads(out)
    assert (counts["graphs"], counts["nodes"], counts["directed_edges"]) == (12_000, 277_864, 597_970)
    code, out, _ = ckgconv("data", "info", "zinc", "--limit", "5")
    assert "15" in out
    code, _, err = ckgconv("data", "build", "zinc")
    assert (code, "nothing to build" in err) == (2, True)


def test_nodes_of_one_large_graph(ckgconv):
    settings = ["model.width=4", "model.steps=2", "model.support=1", "training.epochs=2"]
    code, out, err = ckgconv("train", "large-sbm", "--set", *settings, "--json", "--device", "cpu")
    assert code == 0, err
    result = json.loads(out)
    assert result["majority_predictor"] == pytest.approx(0.2, abs=0.03)
    code, out, _ = ckgconv("evaluate", "runs/large-sbm-seed0", "--json")
    assert json.loads(out)["value"] == pytest.approx(result["best"]["test"])
    code, out, _ = ckgconv("predict", "runs/large-sbm-seed0", "large-sbm", "-o", "nodes.csv", "--embed", "--json")
    assert json.loads(out) == {"out": "nodes.csv", "rows": 2000, "predicted": 2000, "invalid": 0}
    rows = list(csv.DictReader(Path("nodes.csv").read_text().splitlines()))
    assert [row["node"] for row in rows] == [str(node) for node in range(2000)]
    assert sum(float(rows[0][f"prediction{place}"]) for place in range(5)) == pytest.approx(1)
    assert {row["class"] for row in rows} <= set("01234")
    assert all(math.isfinite(float(rows[0][f"embedding{place}"])) for place in range(4))
    code, out, _ = ckgconv("data", "info", "large-sbm", "--json")
    assert {"graphs": 1, "nodes": 2000, "train_nodes": 782}.items() <= json.loads(out).items()
    code, out, _ = ckgconv("data", "build", "large-sbm", "--data-dir", "drawn")
    assert (code, Path("drawn/large_sbm.npz").exists()) == (0, True)
    code, out, _ = ckgconv("data", "list", "--json", "--data-dir", "elsewhere")
    assert json.loads(out)["large-sbm"]["source"] == "generated here"


def test_graphs_of_a_packed_data_set_are_predicted(ckgconv):
    ckgconv("train", "zinc", "--set", *SMALL, "--json", "--device", "cpu")
    save_packed(zinc().limited(5), Path("mine.npz"))
    code, out, _ = ckgconv("predict", "runs/zinc-seed0", "mine.npz", "-o", "out.csv")
    assert (code, "15 of 15 rows" in out) == (0, True)
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert list(rows[0]) == ["graph", "prediction"]
    code, _, err = ckgconv("predict", "runs/zinc-seed0", "mine.npz", "--smiles", "s")
    assert (code, "--smiles belongs to a CSV" in err) == (2, True)


def test_bench(ckgconv):
    code, out, _ = ckgconv("bench", "zinc", "--set", *SMALL[:4], "--steps", "2", "--json", "--device", "cpu")
    assert code == 0
    names = {"epoch_s", "step_ms", "graphs_per_s", "peak_memory_mb", "device", "precision", "copy_gb_s"}
    assert names <= set(json.loads(out))
    code, out, _ = ckgconv("bench", "zinc", "--set", *SMALL[:4], "--steps", "1", "--device", "cpu")
    assert "step_ms" in out


def test_a_table_of_many_columns_is_not_listed_whole(ckgconv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wide.csv").write_text(",".join(["smiles", *(f"c{each}" for each in range(5000))]) + "\nC" + ",1" * 5000)
    code, _, err = ckgconv("train", "wide.csv")
    assert code == 2
    assert len(err) < 1000
    assert "c23 and 4,976 others." in " ".join(err.split())


def test_a_command_without_memory_ends_in_a_sentence(ckgconv, monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(sys.modules["ckgconv.cli.info"], "named_or_saved", fails)
    code, _, err = ckgconv("info", "zinc")
    assert (code, "not enough memory for this command" in " ".join(err.split())) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "zink"], "did you mean zinc?"),
        (["train", "zinc", "--set", "model.widht=3"], "did you mean model.width?"),
        (["train", "absent.csv", "--target", "y"], "does not exist"),
        (["train", "absent.json"], "does not exist"),
        (["train", "my.csv"], "No target was named: give --target with one of name, y, toxic."),
        (["train", "my.csv", "--target", "z"], "no column 'z'"),
        (["train", "my.csv", "--target", "y", "--smiles", "smile"], "did you mean smiles?"),
        (["train", "empty.csv", "--target", "y"], "is empty"),
        (["train", "missing.csv", "--target", "y"], "Every value of target 'y'"),
        (["train", "wrong.txt"], "neither a recipe.json nor a .csv or another table"),
        (["train", "zinc", "--out", "taken"], "already exists"),
        (["train", "zinc", "--resume", "--out", "taken"], "holds no run to resume"),
        (["train", "zinc", "--target", "y"], "--target belongs to a table such as a CSV"),
        (["train", "zinc", "--set", "training.epochs=0"], "training.epochs is 0: give at least 1."),
        (["train", "zinc", "--set", "training.batch_size=-1"], "training.batch_size is -1"),
        (["train", "zinc", "--set", "training.learning_rate=-1"], "training.learning_rate is -1"),
        (["train", "zinc", "--set", "model.width=0"], "model.width is 0"),
        (["train", "zinc", "--set", "model.steps=0"], "model.steps is 0"),
        (["train", "zinc", "--set", "training.metric=accuracy"], "is judged by mae"),
        (["train", "zinc", "--seed", "99999999999"], "The seed is 99999999999"),
        (["train", "pattern", "--set", "model.head.outputs=3"], "but the loss 'weighted_binary' needs one"),
        (["train", "mnist", "--set", "model.head.outputs=1"], "but the loss 'cross_entropy' needs one for each class"),
        (["train", "semicolons.csv", "--target", "y"], "2 usable rows"),
        (["train", "unclear.csv", "--target", "y"], "do not tell which of them separates"),
        (["train", "folder.json"], "cannot be read as text"),
        (["predict", "taken", "my.csv", "-o", "my.csv"], "is the input"),
        (["predict", "taken", "my.csv", "-o", "."], ". is a folder: name a file in it."),
        (["predict", "taken", "my.csv", "-o", ""], ". is a folder: name a file in it."),
        (["data", "info", "hollow.npz"], "not a packed data set"),
        (["train", "zinc", "--seed", "0", "0"], "same seed"),
        (["train", "zinc", "--device", "abacus"], "device is 'abacus'"),
        (["train", "zinc", "--precision", "7"], "precision is '7'"),
        (["train", "zinc", "--set", "data.limit=0"], "data.limit is 0"),
        (["evaluate", "nowhere"], "is not a folder"),
        (["evaluate", "taken"], "no recipe.json"),
        (["predict", "taken", "my.csv"], "no recipe.json"),
        (["predict", "taken", "absent.csv"], "absent.csv does not exist: check the path of the table to predict."),
        (["predict", "taken", "absent.csv", "-o", "my.csv"], "absent.csv does not exist"),
        (["bench", "zinc", "--steps", "0"], "--steps is 0"),
        (["bench", "nothing"], "There is no recipe"),
        (["data", "info", "nothing"], "There is no data set"),
        (["info", "nothing"], "There is no recipe"),
    ],
)
def test_errors_are_a_sentence_and_exit_code_2(ckgconv, tmp_path, arguments, words):
    table("my.csv")
    Path("empty.csv").write_text("")
    Path("missing.csv").write_text("smiles,y\nC,\nCC,\n")
    Path("wrong.txt").write_text("smiles,y\nC,1\n")
    Path("semicolons.csv").write_text("smiles;y\nC;1\nCC;2\n")
    Path("unclear.csv").write_text("smiles;y,z\nC;1,1\n")
    Path("folder.json").mkdir()
    Path("hollow.npz").write_bytes(b"")
    Path("taken").mkdir()
    Path("taken/notes.txt").write_text("mine")
    code, _, err = ckgconv(*arguments)
    assert code == 2
    assert words in err.replace("\n", " ")
    assert "Traceback" not in err
    assert Path("taken/notes.txt").read_text() == "mine"


def test_wrong_options_exit_2(ckgconv):
    assert ckgconv("train", "zinc", "--sede", "3")[0] == 2
    assert ckgconv("fly")[0] == 2


def test_predicting_molecules_with_a_superpixel_network_is_refused(ckgconv, tmp_path):
    from dataclasses import replace

    from small_data import small_dataset

    from ckgconv import recipe, train

    chosen = recipe("mnist")
    chosen = replace(
        chosen, model=replace(chosen.model, width=8, blocks=1, steps=2), training=replace(chosen.training, epochs=1)
    )
    train(chosen, data=small_dataset(chosen), folder=tmp_path / "pixels", device="cpu")
    table("my.csv")
    code, _, err = ckgconv("predict", "pixels", "my.csv")
    assert code == 2
    assert "not the atoms that SMILES are read as" in err
    assert "pixels" in err


def test_killed_run_resumes_to_the_same_weights(tmp_path):
    """kill -9 of the real command, then --resume."""
    command = [sys.executable, "-c", "from ckgconv.cli import main; main()", "train", "zinc", "--device", "cpu"]
    settings = ["--set", "model.width=8", "model.blocks=2", "model.steps=3", "data.limit=96", "training.epochs=6"]
    subprocess.run([*command, *settings, "--out", "whole", "--json"], check=True, capture_output=True)
    killed = subprocess.Popen([*command, *settings, "--out", "killed", "--json"], stdout=subprocess.DEVNULL)
    while not (tmp_path / "killed" / "checkpoints" / "000000.json").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert len(json.loads((tmp_path / "killed" / "record.json").read_text())["epochs"]) < 6
    subprocess.run([*command, *settings, "--out", "killed", "--resume", "--json"], check=True, capture_output=True)
    one, other = (checkpoint.load(tmp_path / folder / "checkpoints" / "000005")[0] for folder in ("whole", "killed"))
    assert set(one) == set(other)
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def test_a_run_on_other_data_is_refused(ckgconv):
    """Data given in Python, and a CSV that has changed."""
    from dataclasses import replace

    from ckgconv import recipe, train

    chosen = recipe("zinc")
    model = replace(chosen.model, width=8, blocks=1, steps=2)
    chosen = replace(
        chosen,
        data=replace(chosen.data, name="mine", limit=4),
        model=model,
        training=replace(chosen.training, epochs=1),
    )
    train(chosen, data=zinc(), folder=Path("given"), device="cpu")
    code, _, err = ckgconv("evaluate", "given")
    assert (code, "given was trained on data given in Python" in err) == (2, True)
    code, _, err = ckgconv("train", "given/recipe.json", "--resume")
    assert (code, "resume it in Python" in err) == (2, True)
    assert ckgconv("predict", "given", table("my.csv"))[0] == 0
    settings = ["model.width=8", "model.blocks=1", "model.steps=2", "training.epochs=1"]
    assert ckgconv("train", "my.csv", "--target", "y", "--set", *settings)[0] == 0
    table("my.csv", rows=40)
    for command in (["evaluate", "runs/my-seed0"], ["train", "runs/my-seed0/recipe.json", "--resume"]):
        code, _, err = ckgconv(*command)
        assert (code, "my.csv is no longer what runs/my-seed0 was trained on: it has 40 graphs" in err) == (2, True)
    assert ckgconv("predict", "runs/my-seed0", "my.csv")[0] == 0


def test_folds(ckgconv):
    table("my.csv")
    settings = ["model.width=4", "model.blocks=1", "model.steps=2", "training.epochs=2"]
    command = ["train", "my.csv", "--target", "toxic", "--set", *settings, "--device", "cpu", "--folds", "3"]
    code, out, err = ckgconv(*command)
    assert code == 0, err
    assert out.count("fold 2 of 3") == 1
    assert "test auroc over 3 folds: " in out
    assert "the best on average over the folds: " in out
    code, out, _ = ckgconv(*command, "--resume", "--json")
    result = json.loads(out)
    assert [run["run"] for run in result["runs"]] == [f"runs/my-seed0/fold{fold}" for fold in range(3)]
    assert result["tests"] == [run["best"]["test"] for run in result["runs"]]
    assert set(result["tested"]) == {"mean", "sd"}
    assert json.loads(Path("runs/my-seed0/folds.json").read_text())["tested"] == result["tested"]
    code, out, _ = ckgconv("evaluate", "runs/my-seed0/fold1", "--json")
    assert json.loads(out)["value"] == pytest.approx(result["tests"][1])
    code, _, err = ckgconv("train", "my.csv", "--target", "toxic", "--folds", "2")
    assert (code, "--folds is 2" in err) == (2, True)
    code, _, err = ckgconv("train", "my.csv", "--target", "y", "--splits-column", "name", "--folds", "3", "--out", "o")
    assert (code, "give train, val or test" in err) == (2, True)


def test_help_has_names_in_full_at_any_width(ckgconv, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = ckgconv("train", "--help")
    assert code == 0
    for names in ("--smiles, --smiles-columns", "--seed, --pytorch-seed", "--out, --save-dir, --output-dir"):
        assert names in out
