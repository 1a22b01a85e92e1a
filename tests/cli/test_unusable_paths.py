"""Paths that the operating system refuses to look at, and output that cannot be printed: sentences, in Python, too.

A name that is too long stands for a folder that may not be looked into, which stops nobody who is root.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ckgconv import InputError, Predictor, open_run, open_runs, recipe, train
from ckgconv.data import load, load_packed
from ckgconv.data.table_stream import stream_table
from ckgconv.data.tables import read_table
from ckgconv.recipe import DataRecipe

LONG = "x" * 300
TABLE = f"{LONG}/t.csv"


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "zinc", TABLE],
        ["predict", LONG, "t.csv"],
        ["predict", "zinc", "t.csv", "-o", TABLE],
        ["train", TABLE, "--target", "y"],
        ["train", "t.csv", "--target", "y", "--out", LONG],
        ["train", "t.csv", "--target", "y", "--out", LONG, "--resume"],
        ["train", "t.csv", "--target", "y", "--init", LONG],
        ["train", f"{LONG}/recipe.json"],
        ["train", "zinc", "--set", f"data.name={LONG}/d.npz", "--out", "run"],
        ["evaluate", LONG],
        ["explain", "zinc", TABLE],
        ["explain", "zinc", "C", "-o", f"{LONG}/m.svg"],
        ["report", LONG],
        ["compare", LONG],
        ["export", "zinc", "-o", LONG],
        ["pretrain", TABLE, "--out", "run"],
        ["data", "describe", "t.csv", f"{LONG}/d.npz"],
        ["campaign", LONG],
        ["campaign", "status", LONG],
        ["search", "t.csv", "--target", "y", "--out", LONG],
        ["serve", LONG],
    ],
    ids=" ".join,
)
def test_commands(ckgconv, command):
    Path("t.csv").write_text("smiles,y\n" + "".join(f"{'C' * (1 + row)},{row}\n" for row in range(12)))
    code, _, err = ckgconv(*command)
    assert (code, err.count("Traceback")) == (2, 0)
    assert err.strip().splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    "call",
    [
        lambda: open_run(LONG),
        lambda: open_runs([LONG, LONG]),
        lambda: Predictor.open(LONG),
        lambda: load_packed(Path(LONG, "d.npz")),
        lambda: load(DataRecipe(TABLE, targets=("y",), split="random")),
        lambda: load(DataRecipe(f"{LONG}/d.npz")),
        lambda: load(DataRecipe(LONG)),
        lambda: read_table(Path(TABLE)),
        lambda: read_table(Path(LONG, "t.parquet")),
        lambda: stream_table(Path(TABLE)),
        lambda: train(recipe("zinc"), out=LONG),
    ],
)
def test_calls(call):
    with pytest.raises(InputError):
        call()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is full")
def test_output_that_does_not_fit():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ckgconv", "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert "The disk is full: what the command prints could not be written." in done.stderr
    assert (done.returncode, done.stderr.count("Traceback")) == (2, 0)
