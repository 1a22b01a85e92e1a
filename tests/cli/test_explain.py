"""`ckgconv explain`: one molecule, a table, a kernel; mistakes are sentences; covers `ckgconv.cli.feature_values`."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ckgconv import InputError
from ckgconv.cli.feature_values import given_features

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "training.epochs=1", "training.warmup_epochs=0"]


@pytest.fixture
def run(ckgconv):
    rows = "".join(f"{'C' * count}O,{count}\n" for count in range(1, 11))
    Path("m.csv").write_text("smiles,y<b>\n" + rows)
    code, _, err = ckgconv("train", "m.csv", "--target", "y<b>", "--set", *SMALL, "--device", "cpu", "--out", "run")
    assert code == 0, err
    return "run"


def test_a_molecule_a_kernel_and_a_table(ckgconv, run):
    code, out, err = ckgconv("explain", run, "CC=O", "-o", "a.svg", "--device", "cpu")
    assert code == 0, err
    assert "The contributions add up" in out
    assert "bond C1-O2" in out
    assert "y&lt;b&gt;" in Path("a.svg").read_text()
    found = json.loads(ckgconv("explain", run, "CC=O", "--method", "gradient", "--json")[1])
    assert (found["members"], found["adds_up"], len(found["atoms"])) == (1, False, 3)
    assert ckgconv("explain", run, "CC=O", "--kernel", "1", "--channel", "0", "1")[0] == 0
    ElementTree.parse("kernel.svg")
    code, out, err = ckgconv("explain", run, "m.csv", "--limit", "3", "-o", "folder", "--fragments", "groups")
    assert code == 0, err
    assert "3 of 3 rows explained" in out
    assert Path("folder/substructures.svg").exists()
    assert json.loads(ckgconv("explain", run, "m.csv", "--limit", "1", "--json")[1])["explained"] == 1
    for arguments, says in (
        (["C1CC"], "not a valid SMILES"),
        (["CC", "--method", "x"], "--method"),
        (["CC", "--target", "x"], "no target"),
        (["CC", "-o", "a.png"], "no .svg"),
        (["CC", "--limit", "1"], "belong to a table"),
        (["m.csv", "--kernel", "1"], "one molecule"),
        (["m.csv", "--limit", "0"], "at least 1"),
    ):
        code, _, err = ckgconv("explain", run, *arguments)
        assert (code, says in err) == (2, True), err


def test_a_run_that_reads_own_columns(ckgconv):
    rows = "".join(f"{'C' * count}O;{count};{count},5\n" for count in range(1, 11))
    Path("m.csv").write_text("smiles;y;ph\n" + rows)
    options = ["--target", "y", "--features", "ph", "--no-descriptors", "--set", *SMALL, "--device", "cpu"]
    code, _, err = ckgconv("train", "m.csv", *options, "--out", "run")
    assert code == 0, err
    code, out, err = ckgconv("explain", "run", "CCO", "--feature", "ph=7.4")
    assert code == 0, err
    assert "column ph" in out
    assert "The contributions add up" in out
    assert json.loads(ckgconv("explain", "run", "CCO", "--feature", "ph=", "--json")[1])["features"] == {"ph": 0.0}
    Path("more.csv").write_text("SMILES;ph\nCCO;1,5\nCCN;acid\n")
    code, out, err = ckgconv("explain", "run", "more.csv", "-o", "folder")
    assert code == 0, err
    assert "1 of 2 rows explained, 1 invalid" in out
    assert "has decimal commas" in err
    assert "'acid' in column 'ph' is no number" in Path("folder/molecules.csv").read_text()
    assert ckgconv("explain", "run", "CCO", "--kernel", "1")[0] == 0
    for arguments, says in (
        (["CCO"], "The network reads ph beside each molecule: give --feature ph=NUMBER, without a number where"),
        (["CCO", "--feature", "ph"], "has no value: give ph=NUMBER"),
        (["CCO", "--feature", "ph=7,4"], "--feature ph is '7,4': give a number, with a decimal point."),
        (["CCO", "--feature", "ph=inf"], "give a finite number"),
        (["CCO", "--feature", "hp=7"], "reads no column 'hp'"),
        (["m.csv", "--feature", "ph=7"], "--feature belongs to one molecule"),
        (["absent.csv"], "absent.csv does not exist"),
    ):
        code, _, err = ckgconv("explain", "run", *arguments)
        assert (code, says in err) == (2, True), err
    code, _, err = ckgconv("explain", "zinc", "CCO", "--feature", "ph=7")
    assert (code, "the network reads molecules alone" in err) == (2, True), err


def test_columns_with_spaces_are_quoted_for_the_shell():
    with pytest.raises(InputError, match="give --feature 'pH of buffer=NUMBER' --feature t=NUMBER, without"):
        given_features(["pH of buffer", "t"], [])
    assert given_features(["pH of buffer"], ["pH of buffer=7"]) == [7.0]


def test_classes_of_a_table_are_explained_one_by_one(ckgconv):
    rows = "".join(f"{'C' * count}O,{('low', 'high')[count % 2]}\n" for count in range(1, 17))
    Path("m.csv").write_text("smiles,c\n" + rows + "CCN,mid\nCCCN,mid\nCCCCN,mid\n")
    options = ["--task-type", "multiclass", "--no-descriptors", "--set", *SMALL, "--device", "cpu"]
    code, _, err = ckgconv("train", "m.csv", "--target", "c", *options, "--out", "run")
    assert code == 0, err
    assert "logit of c = " in ckgconv("explain", "run", "CCO")[1]
    code, _, err = ckgconv("explain", "run", "m.csv", "--limit", "2")
    assert code == 2
    assert "choose one of them, --target 'c = high'" in err
    assert ckgconv("explain", "run", "m.csv", "--limit", "2", "--target", "c = low")[0] == 0
