"""`ckgconv explain`: one molecule, a table, a kernel; mistakes end with a sentence."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

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
