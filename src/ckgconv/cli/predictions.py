"""Predictions as columns of a table, by one run or by the mean of several.

one run         y_predicted, or prediction, prediction0, …; the class; what the head reads
several runs    the same columns with the mean, and for each NAME also NAME_std and NAME_median over the members

Cells of molecules that could not be predicted are empty.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ckgconv.checks import require
from ckgconv.data import PackedDataset
from ckgconv.engine.ensemble import Ensemble, open_networks
from ckgconv.engine.opened import open_network
from ckgconv.engine.predict import predict_smiles
from ckgconv.engine.predict_packed import predict_packed
from ckgconv.engine.run import Run

Tick = Callable[[int], None]
Rows = Sequence[Sequence[float]]  # values of `data.features`, a row for each molecule
# By name; one cell per row.
Columns = dict[str, list[str]]


@dataclass(frozen=True)
class OneRun:
    """Columns of the predictions of a run, `embed`: with the features that the head reads."""

    run: Run
    embed: bool
    members = 1

    def molecules(self, smiles: Sequence[str], tick: Tick, features: Rows | None = None) -> tuple[Columns, list[str]]:
        """Columns for molecules, and the reason why each has no prediction; `features` as in `predict_smiles`."""
        found = predict_smiles(self.run, smiles, tick, features)
        columns = _by_row(output_names(self.run), found.values) | {"reason": found.reasons}
        if self.embed:
            columns |= _by_row(_feature_names(self.run.model.head_width), found.embeddings)
        return columns, found.reasons

    def graphs(self, data: PackedDataset, tick: Tick) -> Columns:
        """Columns for the graphs or nodes of a data set."""
        found = predict_packed(self.run, data, tick)
        columns = _numbers(found.graph, found.node, found.classes) | _cells(output_names(self.run), found.values)
        return columns | (_cells(_feature_names(found.embeddings.shape[1]), found.embeddings) if self.embed else {})


@dataclass(frozen=True)
class SeveralRuns:
    """Columns of the mean, s.d. and median of the predictions of an ensemble."""

    ensemble: Ensemble

    @property
    def run(self) -> Run:
        """The first member, which names columns as every other does."""
        return self.ensemble.runs[0]

    @property
    def members(self) -> int:
        return len(self.ensemble.runs)

    def molecules(self, smiles: Sequence[str], tick: Tick, features: Rows | None = None) -> tuple[Columns, list[str]]:
        """Columns for molecules, and the reason why each has no prediction."""
        found = self.ensemble.predict(smiles, tick, features)
        valid = [not reason for reason in found.reasons]
        columns: Columns = {}
        for ending, values in (("", found.mean), ("_std", found.std), ("_median", found.median)):
            rows = [row if known else None for row, known in zip(values.tolist(), valid, strict=True)]
            columns |= _by_row([name + ending for name in output_names(self.run)], rows)
        return columns | {"reason": found.reasons}, found.reasons

    def graphs(self, data: PackedDataset, tick: Tick) -> Columns:
        """Columns for the graphs or nodes of a data set."""
        found = self.ensemble.predict(data, tick)
        assert found.graph is not None
        columns = _numbers(found.graph, found.node, found.classes)
        for ending, values in (("", found.mean), ("_std", found.std), ("_median", found.median)):
            columns |= _cells([name + ending for name in output_names(self.run)], values)
        return columns


def predictor(folders: Sequence[Path], device: str, embed: bool) -> OneRun | SeveralRuns:
    """One run, or several as an ensemble."""
    if len(folders) == 1:
        return OneRun(open_network(folders[0], device), embed)
    require(not embed, f"--embed was given with {len(folders)} runs, each of which has features of its own: give one.")
    return SeveralRuns(open_networks(folders, device))


def output_names(run: Run) -> list[str]:
    """Names of the columns with predictions."""
    outputs = run.recipe.model.head.outputs
    unnamed = ["prediction"] if outputs == 1 else [f"prediction{index}" for index in range(outputs)]
    return [f"{name}_predicted" for name in run.recipe.data.targets] or unnamed


def _feature_names(width: int) -> list[str]:
    return [f"embedding{index}" for index in range(width)]


def _by_row(names: Sequence[str], rows: Sequence[Sequence[float] | None]) -> Columns:
    """Columns of rows, empty where a row is None."""
    return {name: ["" if row is None else repr(row[place]) for row in rows] for place, name in enumerate(names)}


def _cells(names: Sequence[str], values: Tensor) -> Columns:
    """Columns of values [M, T]."""
    return {name: [repr(value) for value in column] for name, column in zip(names, values.T.tolist(), strict=True)}


def _numbers(graph: Tensor, node: Tensor | None, classes: Tensor | None) -> Columns:
    numbered = {"graph": graph, "node": node, "class": classes}
    return {name: [str(each) for each in values.tolist()] for name, values in numbered.items() if values is not None}
