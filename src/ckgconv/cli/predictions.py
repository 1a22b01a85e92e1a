"""Predictions for the graphs or nodes of a data set as columns, by one run or by the mean of several.

one run         y_predicted, or prediction, prediction0, …; the class; what the head reads
several runs    the same columns with the mean, and for each NAME also NAME_deviation and NAME_median of the members
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ckgconv.checks import require
from ckgconv.cli.output_table import table_writer
from ckgconv.data import PackedDataset
from ckgconv.data.spreadsheet import as_text
from ckgconv.engine.ensemble import Ensemble, open_networks
from ckgconv.engine.members import is_ensemble
from ckgconv.engine.opened import open_network
from ckgconv.engine.predict_packed import predict_packed
from ckgconv.engine.run import Run
from ckgconv.uncertainty.outputs import output_names
from ckgconv.uncertainty.predicted import column_name

Tick = Callable[[int], None]
# By name; one cell per row.
Columns = dict[str, list[str]]


@dataclass(frozen=True)
class OneRun:
    """Columns of the predictions of a run, `embed`: with the features that the head reads."""

    run: Run
    embed: bool
    members = 1

    def graphs(self, data: PackedDataset, tick: Tick) -> Columns:
        """Columns for the graphs or nodes of a data set."""
        found = predict_packed(self.run, data, tick)
        columns = _numbers(found.graph, found.node, found.classes) | _cells(
            [column_name(name, "predicted") for name in output_names(self.run)], found.values
        )
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

    def graphs(self, data: PackedDataset, tick: Tick) -> Columns:
        """Columns for the graphs or nodes of a data set."""
        found = self.ensemble.predict(data, tick)
        assert found.graph is not None
        columns = _numbers(found.graph, found.node, found.classes)
        names = output_names(self.run)
        for ending, values in (("predicted", found.mean), ("deviation", found.std), ("median", found.median)):
            columns |= _cells([column_name(name, ending) for name in names], values)
        return columns


def predictor(folders: Sequence[Path], device: str, embed: bool) -> OneRun | SeveralRuns:
    """One run, or several as an ensemble."""
    if len(folders) == 1 and not is_ensemble(folders[0]):
        return OneRun(open_network(folders[0], device), embed)
    runs = open_networks(folders, device)
    require(
        not embed, f"--embed was given with {len(runs.runs)} runs, each of which has features of its own: give one."
    )
    return SeveralRuns(runs)


def write_columns(part: Path, out: Path, columns: Columns) -> None:
    """Write columns into `part`, which is going to be the table `out`."""
    with table_writer(part, out) as writer:
        writer.writerow(map(as_text, columns))
        writer.writerows(map(as_text, row) for row in zip(*columns.values(), strict=True))


def _feature_names(width: int) -> list[str]:
    return [f"embedding{index}" for index in range(width)]


def _cells(names: Sequence[str], values: Tensor) -> Columns:
    """Columns of values [M, T]."""
    return {name: [repr(value) for value in column] for name, column in zip(names, values.T.tolist(), strict=True)}


def _numbers(graph: Tensor, node: Tensor | None, classes: Tensor | None) -> Columns:
    numbered = {"graph": graph, "node": node, "class": classes}
    return {name: [str(each) for each in values.tolist()] for name, values in numbered.items() if values is not None}
