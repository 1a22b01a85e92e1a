"""The methods of `duel.py`: each is a command to run, and what reads its predictions of the test split.

Legend: M rows, T targets, F features.
"""

import argparse
import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Read = Callable[[], Array]


@dataclass(frozen=True)
class Rows:
    """A folder with table.csv: smiles, targets, split."""

    folder: Path
    targets: tuple[str, ...]
    classification: bool

    def of(self, split: str) -> list[dict[str, str]]:
        with (self.folder / "table.csv").open(newline="") as file:
            return [row for row in csv.DictReader(file) if row["split"] == split]

    def truth(self, split: str) -> Array:
        """[M, T], NaN where unknown."""
        return numbers(self.of(split), self.targets)


def numbers(rows: list[dict[str, str]], names: tuple[str, ...]) -> Array:
    """Columns [M, T] as numbers; NaN where a cell is empty."""
    return np.array([[float(row[name]) if row[name] else np.nan for name in names] for row in rows])


def chemprop(rows: Rows, seed: int, options: argparse.Namespace) -> tuple[list[str], Read]:
    """Its defaults; what predictions are chosen by is its own affair."""
    command = [options.chemprop, "train", "-i", "table.csv", "-s", "smiles", "--splits-column", "split", "-o", "out"]
    command += ["-t", "classification" if rows.classification else "regression", "--target-columns", *rows.targets]
    command += ["--pytorch-seed", str(seed), "--accelerator", "cpu", "-q"]

    def read() -> Array:
        with (rows.folder / "out" / "model_0" / "test_predictions.csv").open(newline="") as file:
            found = list(csv.DictReader(file))
        assert [row["smiles"] for row in found] == [row["smiles"] for row in rows.of("test")]
        return numbers(found, rows.targets)

    return command, read


def own(kind: str) -> Callable[[Rows, int, argparse.Namespace], tuple[list[str], Read]]:
    """A method in a file of this folder, which writes predicted.npy [M, T]."""

    def method(rows: Rows, seed: int, options: argparse.Namespace) -> tuple[list[str], Read]:
        script = Path(__file__).with_name("duel_child.py")
        command = [sys.executable, str(script), kind, "--seed", str(seed), "--targets", *rows.targets]
        command += ["--classification"] if rows.classification else []
        return command, lambda: np.load(rows.folder / "predicted.npy")

    return method


METHODS = {
    "ckgconv": own("ckgconv"),
    "scratch": own("scratch"),
    "chemprop": chemprop,
    "forest": own("forest"),
    "linear": own("linear"),
}
