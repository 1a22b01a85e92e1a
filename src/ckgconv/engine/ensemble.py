"""Several runs on the same data as one predictor, of whatever models.

    mean_k f_k(x)     median_k f_k(x)     s.d. = √(Σ_k (f_k(x) - mean)² / (K - 1))

over the members k, of values in the units of the data, or of probabilities of classes or labels. A member computes its
predictions once; mean, median and deviation are taken of them.

Legend: K members, M rows (graphs or nodes), T outputs.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.data import PackedDataset
from ckgconv.data.packed_molecules import with_values
from ckgconv.engine.compatible import Cost, check_together, name_of, total_cost
from ckgconv.engine.data_identity import DataIdentity
from ckgconv.engine.members import all_members
from ckgconv.engine.opened import FindData, open_with
from ckgconv.engine.parts import Parts
from ckgconv.engine.predict_molecules import Tick, no_tick, predict_molecules, read_for
from ckgconv.engine.predict_packed import predict_packed
from ckgconv.engine.predict_split import predict_split
from ckgconv.engine.record import Record
from ckgconv.engine.run import Run
from ckgconv.engine.run_data import GivenData, opened_data
from ckgconv.recipe import DataRecipe, Recipe
from ckgconv.tasks.metrics import Score
from ckgconv.tasks.task import Task, classes_of


@dataclass(frozen=True)
class Combined:
    """Predictions of K members for the same rows, and what the ensemble predicts."""

    members: Tensor  # [K, M, T] float64: values, or probabilities of classes or labels

    @property
    def mean(self) -> Tensor:
        """[M, T] what the ensemble predicts."""
        return self.members.mean(0)

    @property
    def std(self) -> Tensor:
        """[M, T] sample standard deviation between the members."""
        return self.members.std(0)

    @property
    def median(self) -> Tensor:
        """[M, T] of an even number of members the mean of the middle two."""
        ascending, count = self.members.sort(0).values, len(self.members)
        return (ascending[(count - 1) // 2] + ascending[count // 2]) / 2


@dataclass(frozen=True)
class MemberOutcomes(Combined):
    """What K members say of the rows of a split, each asked once, for all that is judged by it."""

    target: Tensor  # [M] or [M, T]
    seconds: float  # of prediction


@dataclass(frozen=True)
class EnsemblePredictions(Combined):
    """Predictions for new data; rows of molecules that could not be predicted are NaN."""

    classes: Tensor | None  # [M] int64 the most probable class by the mean; None in regression and for labels
    graph: Tensor | None  # [M] int64 number of the graph; None for molecules
    node: Tensor | None  # [M] int64 number of the node within its graph, where the networks do not pool
    reasons: list[str]  # of each molecule, why nothing was predicted; empty where something was


@dataclass(frozen=True)
class Evaluated:
    """The metric of an ensemble on a split."""

    split: str
    metric: str
    value: float  # of the mean of the members' predictions
    median: float  # of their median
    members: tuple[float, ...]  # of each member alone
    spread: float  # s.d. between the members, averaged over rows and outputs
    cost: Cost


class Ensemble:
    """Runs that were trained on the same data for the same targets; others are refused.

    Args:
        runs: at least two, opened with their data to be evaluated (`open_runs`, `open_run`) or trained here.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        check_together(self.runs)

    def evaluate(self, split: str = "test", outcomes: MemberOutcomes | None = None) -> Evaluated:
        """The metric of the mean and of the median of the predictions for "train", "val" or "test".

        `outcomes` are those of the split, where they are known already.
        """
        require_one_metric(self.runs)
        found, task = outcomes or member_outcomes(self.runs, split), self.runs[0].learner.task
        return Evaluated(
            split=split,
            metric=task.metric_name,
            value=metric_of(task, found.mean, found.target),
            median=metric_of(task, found.median, found.target),
            members=tuple(metric_of(task, outcome, found.target) for outcome in found.members),
            spread=float(found.std.mean()),
            cost=replace(total_cost(self.runs), predicting_s=round(found.seconds, 3)),
        )

    def predict(
        self,
        data: PackedDataset | str | Sequence[str],
        tick: Tick = no_tick,
        features: Sequence[Sequence[float]] | None = None,
    ) -> EnsemblePredictions:
        """Predict all graphs or nodes of a data set, or molecules given as one SMILES or several.

        `tick` is called with the graphs or molecules that a member has done since its last call; `features` of
        molecules are those of `predict_smiles`.
        """
        data = [data] if isinstance(data, str) else data
        if isinstance(data, PackedDataset):
            return self._predict_packed(data, tick)
        return self._predict_smiles(data, tick, features)

    def _predict_packed(self, data: PackedDataset, tick: Tick) -> EnsemblePredictions:
        found = [predict_packed(run, data, tick) for run in self.runs]
        members = torch.stack([each.values.double().cpu() for each in found])
        classes = None if found[0].classes is None else self._classes(members.mean(0))
        return EnsemblePredictions(members, classes, found[0].graph, found[0].node, [])

    def _predict_smiles(
        self, smiles: Sequence[str], tick: Tick, features: Sequence[Sequence[float]] | None
    ) -> EnsemblePredictions:
        molecules, reasons = read_for(self.runs, smiles)
        molecules = molecules if features is None else with_values(molecules, features)
        members = torch.from_numpy(np.stack([predict_molecules(run, molecules, tick).values for run in self.runs]))
        return EnsemblePredictions(members, None, None, None, reasons)

    def _classes(self, mean: Tensor) -> Tensor:
        return classes_of(self.runs[0].learner.task.loss.prediction_of(mean))

    def __repr__(self) -> str:
        return f"Ensemble({', '.join(name_of(run) for run in self.runs)})"


def open_runs(
    folders: Sequence[Path | str], device: str = "auto", precision: str | None = None, data: GivenData = None
) -> Ensemble:
    """The best networks of several runs as an ensemble; the data set that they share is read once.

    The folder of an ensemble stands for its members. `data` is as in `open_run`. Runs with a `model` or `metric` given
    in Python are opened one by one with `open_run`, and then joined in an `Ensemble`.
    """
    read: dict[tuple[DataRecipe, DataIdentity | None], PackedDataset] = {}

    def find_in(folder: Path) -> FindData:
        def find(recipe: Recipe, record: Record) -> PackedDataset:
            key = recipe.data, record.data
            if key not in read:
                read[key] = opened_data(folder, recipe, data, record.data)
            return read[key]

        return find

    return _opened(folders, device, precision, find_in)


def open_networks(folders: Sequence[Path | str], device: str = "auto", precision: str | None = None) -> Ensemble:
    """As `open_runs` without the data set: enough to predict."""
    return _opened(folders, device, precision, lambda folder: None)


def _opened(
    folders: Sequence[Path | str], device: str, precision: str | None, find_in: Callable[[Path], FindData | None]
) -> Ensemble:
    return Ensemble([open_with(path, device, precision, Parts(), find_in(path)) for path in all_members(folders)])


def member_outcomes(runs: Sequence[Run], split: str) -> MemberOutcomes:
    """Of runs that were opened with their data."""
    start = time.perf_counter()
    found = [predicted_outcomes(run, split) for run in runs]
    members = torch.stack([outcome for outcome, _ in found])
    return MemberOutcomes(members, found[0][1], time.perf_counter() - start)


def predicted_outcomes(run: Run, split: str) -> tuple[Tensor, Tensor]:
    """Of a run for a split of its data: values or probabilities [M, T] in float64, and targets."""
    run.check_data()
    found = predict_split(run.learner, split)
    require(len(found.target) > 0, f"The data of {name_of(run)} has no targets in {split!r}: choose another split.")
    outcome, _ = run.learner.task.loss.outcome(found.prediction.double())
    return outcome, found.target


def metric_of(task: Task, outcome: Tensor, target: Tensor) -> float:
    """The metric of values or probabilities [M, T]."""
    score = Score(task.metric, outcome.shape[1], outcome.device)
    score.collector.sync_on_compute = False  # each of several processes has all rows
    score.update(task.loss.prediction_of(outcome), target)
    return score.compute()


def require_one_metric(runs: Sequence[Run]) -> None:
    """Refuse runs that are judged by different metrics."""
    first = runs[0]
    for run in runs[1:]:
        if run.record.metric != first.record.metric:
            raise InputError(
                f"{name_of(first)} is judged by {first.record.metric}, but {name_of(run)} by {run.record.metric}: "
                f"evaluate runs of one metric together."
            )
