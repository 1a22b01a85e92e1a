"""Options for initial weights and for features beside molecules, and the commands that use them."""

import csv

import pytest
from typer.testing import CliRunner

from ckgconv import open_run, predict_smiles
from ckgconv.checks import InputError
from ckgconv.cli import app
from ckgconv.cli.initial_options import FeatureOptions, InitialOptions
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.recipe import DataRecipe
from ckgconv.recipes.molecules import molecules

SMILES = ("CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCl", "CC(C)O", "C1CCCCC1", "CCS", "CCCC", "COC", "CCBr", "CC#N")
TINY = ["--set", "model.width=8", "--set", "model.blocks=1", "--set", "model.steps=3", "--set", "training.epochs=1"]


def table():
    return molecules(DataRecipe("t.csv", targets=("y",)))


def predict(run, smiles, value):
    return predict_smiles(open_run(run, device="cpu"), smiles, features=[[value]]).values[0]


def test_initial_weights(tmp_path):
    assert InitialOptions().applied(table()) == table()
    assert InitialOptions(init="zinc", freeze=2).applied(table()).training.init == "zinc"
    assert InitialOptions(init="zinc", freeze=2).applied(table()).training.freeze == 2
    assert InitialOptions(init=str(tmp_path)).applied(table()).training.init == str(tmp_path.resolve())
    assert InitialOptions(from_scratch=True).applied(table()).training.init == ""
    with pytest.raises(InputError, match="choose one of them"):
        InitialOptions(init="zinc", from_scratch=True).applied(table())


def test_features_are_counted():
    chosen = FeatureOptions(["a", "b"], True).applied(table())
    assert chosen.model.graph_features == 2 + len(DESCRIPTORS)
    assert chosen.data.features == ("a", "b")
    assert FeatureOptions(None, False).applied(table()).model.graph_features == 0
    with pytest.raises(InputError, match="given twice"):
        FeatureOptions(["a", "a"]).applied(table())
    with pytest.raises(InputError, match="a target or the SMILES"):
        FeatureOptions(["y"]).applied(table())
    with pytest.raises(InputError, match="belong to a CSV"):
        FeatureOptions(["a"]).refuse("zinc")


def test_a_run_reads_columns_and_descriptors_in_training_and_prediction(tmp_path):
    path, run = tmp_path / "t.csv", tmp_path / "run"
    rows = [f"{smiles},{number},{number % 3 or ''}" for number, smiles in enumerate(SMILES)]
    path.write_text("smiles,y,ph\n" + "\n".join(rows))
    options = ["--target", "y", "--features", "ph", "--descriptors", "--from-scratch", "--out", str(run), *TINY]
    done = CliRunner().invoke(app, ["train", str(path), *options, "--device", "cpu"])
    assert done.exit_code == 0, done.output
    found = tmp_path / "found.csv"
    done = CliRunner().invoke(app, ["predict", str(run), str(path), "-o", str(found), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    predicted = [float(row["y_predicted"]) for row in csv.DictReader(found.read_text().splitlines())]
    other = tmp_path / "other.csv"
    other.write_text("Smiles;ph\nCCN;1,0\nCCO;\nCC;acid\nc1ccccc1;1,000\n")
    done = CliRunner().invoke(app, ["predict", str(run), str(other), "-o", str(found), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert "The SMILES are those of column 'Smiles'." in done.stderr
    assert "Column 'ph' of" in done.stderr
    assert "has decimal commas: 1,5 is read as 1.5." in done.stderr
    rows = list(csv.DictReader(found.read_text().splitlines()))
    assert rows[2]["reason"] == "'acid' in column 'ph' is no number, and the network reads it."
    again = [float(rows[place]["y_predicted"]) for place in (3, 0, 1)]
    assert again == pytest.approx([predicted[1], *predict(run, "CCN", 1.0), predicted[0]], abs=1e-5)
    opened = open_run(run, device="cpu")
    values = predict_smiles(opened, SMILES, features=[[float(n % 3 or "nan")] for n in range(len(SMILES))]).values
    assert [value for (value,) in values] == pytest.approx(predicted, abs=1e-5)
    with pytest.raises(InputError, match="reads ph beside each molecule"):
        predict_smiles(opened, ["CCO"])
    with pytest.raises(InputError, match="2 rows for 1 molecules"):
        predict_smiles(opened, ["CCO"], features=[[1.0], [2.0]])


def test_pretrain_and_begin_with_it(tmp_path):
    source, run = tmp_path / "all.smi", tmp_path / "run"
    source.write_text("\n".join(SMILES))
    small = ["--molecules", "8", "--epochs", "1", "--device", "cpu", "--exclude", str(source)]
    done = CliRunner().invoke(app, ["pretrain", str(source), "--out", str(run), *small])
    assert isinstance(done.exception, InputError)
    assert "0 molecules" in str(done.exception)
    done = CliRunner().invoke(app, ["pretrain", str(source), "--out", str(run), *small[:-2]])
    assert done.exit_code == 0
    assert "8 molecules of 8 drawn: 0 excluded" in done.output
