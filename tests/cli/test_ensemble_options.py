"""`ckgconv train --ensemble-size`; and what evaluate and predict make of the folder."""

import csv
import json
from pathlib import Path

SMALL = ["model.width=8", "model.blocks=1", "model.steps=2"]
TRAIN = ["train", "my.csv", "--target", "y", "--epochs", "1", "--warmup-epochs", "0", "--device", "cpu"]


def table():
    rows = [f"{'C' * (place // 10 + 1)}{'NOSPB'[place % 5]}{'C' * (place % 10)},{place % 7}" for place in range(100)]
    Path("my.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")


def test_members_are_trained_and_used_as_one(ckgconv):
    table()
    code, out, err = ckgconv(*TRAIN, "--set", *SMALL, "--ensemble", "2", "--at-once", "1", "--out", "both", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    assert (found["ensemble"], found["split"], len(found["members"])) == ("both", "test", 2)
    assert json.loads(Path("both/ensemble.json").read_text())["members"] == ["member0", "member1"]
    assert {"uncertainty.json", "training_molecules.safetensors"} <= {each.name for each in Path("both").iterdir()}
    code, out, err = ckgconv("evaluate", "both", "--device", "cpu", "--json")
    assert code == 0, err
    assert json.loads(out)["value"] == found["value"]
    Path("new.csv").write_text("smiles\nCCO\nnonsense\n")
    code, _, err = ckgconv("predict", "both", "new.csv", "-o", "p.csv", "--device", "cpu")
    assert code == 0, err
    first, second = csv.DictReader(Path("p.csv").read_text().splitlines())
    assert float(first["y_predicted"])
    assert second["reason"]
    code, out, err = ckgconv(
        *TRAIN, "--set", *SMALL, "--ensemble-size", "2", "--out", "both", "--resume", "--at-once", "1"
    )
    assert code == 0, err
    assert "by the mean of 2 members" in out


def test_wrong_options_are_a_sentence(ckgconv):
    table()
    for options, sentence in (
        (["--at-once", "2"], "--at-once belongs to an ensemble"),
        (["--ensemble-size", "2", "--folds", "3"], "choose one of them"),
        (["--ensemble-size", "2", "--seed", "0", "1"], "give the first member's seed"),
        (["--ensemble-size", "1"], "The size of the ensemble is 1: give a whole number of at least 2."),
    ):
        code, _, err = ckgconv(*TRAIN, *options)
        assert code == 2, options
        assert sentence in err
