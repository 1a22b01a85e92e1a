"""Numbers of a report: scores of predictions by split and output.

values    mae, rmse, r2, spearman           labels    auroc, average precision, Brier score, balanced accuracy
classes   accuracy, balanced accuracy       all over rows with a known target; None where undefined
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, balanced_accuracy_score, r2_score, roc_auc_score

from ckgconv.engine.run import Run
from ckgconv.explanation.explainer import kind_of_output, output_names
from ckgconv.report.source import Predicted, Values, predicted_split
from ckgconv.uncertainty.fit import SplitOutcomes

BINS = 10
WORDS = {"mae": "MAE", "rmse": "RMSE", "r2": "R²", "spearman": "Spearman ρ", "auroc": "AUROC"}


@dataclass(frozen=True)
class Reliable:
    """A reliability diagram: bins of equally many rows."""

    predicted: list[float]
    observed: list[float]
    error: float  # mean |observed - predicted|, weighted by rows


def of_values(predicted: Predicted, output: int) -> dict[str, float | None]:
    """Scores of one output of a regression."""
    known = predicted.known(output)
    true, found = predicted.target[known, output], predicted.values[known, output]
    if not len(true):
        return {"mae": None, "rmse": None, "r2": None, "spearman": None}
    spread = len(true) > 1 and float(np.ptp(true)) > 0
    ranked = spread and float(np.ptp(found)) > 0
    return {
        "mae": float(np.abs(found - true).mean()),
        "rmse": float(np.sqrt(np.square(found - true).mean())),
        "r2": float(r2_score(true, found)) if spread else None,
        "spearman": float(spearmanr(true, found).statistic) if ranked else None,
    }


def of_labels(predicted: Predicted, output: int) -> dict[str, float | None]:
    """Scores of one label."""
    known = predicted.known(output)
    true, found = predicted.target[known, output], predicted.values[known, output]
    both = len(np.unique(true)) == 2
    return {
        "auroc": float(roc_auc_score(true, found)) if both else None,
        "average precision": float(average_precision_score(true, found)) if both else None,
        "Brier score": float(np.square(found - true).mean()) if len(true) else None,
        "balanced accuracy": float(balanced_accuracy_score(true, found > 0.5)) if both else None,
    }


def of_classes(predicted: Predicted) -> dict[str, float | None]:
    """Scores of the most probable class."""
    known = predicted.known(0)
    true, found = predicted.target[known, 0].astype(int), most_probable(predicted.values[known])
    if not len(true):
        return {"accuracy": None, "balanced accuracy": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are predicted and do not occur
        balanced = float(balanced_accuracy_score(true, found))
    return {"accuracy": float((true == found).mean()), "balanced accuracy": balanced}


def most_probable(values: Values) -> NDArray[np.int64]:
    """[M] the most probable class; of one column, whether class 1 is."""
    return (values[:, 0] > 0.5).astype(np.int64) if values.shape[1] == 1 else values.argmax(1)


def reliable(true: Values, probability: Values) -> Reliable:
    """Mean probability and observed frequency in bins of equally many rows."""
    order = np.argsort(probability, kind="stable")
    bins = [rows for rows in np.array_split(order, min(BINS, max(len(order) // 5, 1))) if len(rows)]
    predicted = [float(probability[rows].mean()) for rows in bins]
    observed = [float(true[rows].mean()) for rows in bins]
    weights = [len(rows) for rows in bins]
    error = float(np.average(np.abs(np.subtract(predicted, observed)), weights=weights)) if bins else 0.0
    return Reliable(predicted, observed, error)


def errors(predicted: Predicted, kind: str) -> Values:
    """[M] how wrong each row is: the largest error over outputs in their training spreads, or 1 - P(truth)."""
    if kind == "classes":
        target = predicted.target[:, 0]
        known = np.isfinite(target)
        place = np.where(known, target, 0)
        values = predicted.values
        chance = np.concatenate([1 - values, values], axis=1) if values.shape[1] == 1 else values
        right = np.take_along_axis(chance, place.astype(int)[:, None], axis=1)[:, 0]
        return np.where(known, 1 - right, -1.0)
    difference = np.abs(predicted.values - predicted.target)
    scale = np.ones(difference.shape[1])
    if kind in ("values", "mixed") and difference.shape[1] > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of outputs without a known target
            spread = np.nanstd(predicted.target, axis=0)
        scale = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    return np.nan_to_num(difference / scale, nan=-1.0).max(axis=1)


def word(metric: str) -> str:
    """A metric as a heading has it."""
    return WORDS.get(metric, metric)


def shown(value: float | None) -> str:
    """Three significant digits, zeros at the end too."""
    return "–" if value is None or not np.isfinite(value) else f"{value:#.3g}".removesuffix(".")


def by_split(kind: str, splits: dict[str, Predicted], output: int) -> dict[str, dict[str, float | None]]:
    """Scores of an output for every split."""
    if kind == "classes":
        return {name: of_classes(each) for name, each in splits.items()}
    score = of_values if kind == "values" else of_labels
    return {name: score(each, output) for name, each in splits.items()}


def by_target(runs: Sequence[Run], split: str, outcomes: SplitOutcomes) -> dict[str, dict[str, float | None]]:
    """Scores of each output by its name, where runs predict columns of a table; empty elsewhere."""
    targets = runs[0].recipe.data.targets
    found = predicted_split(runs, split, outcomes) if targets else None
    if found is None:
        return {}
    if runs[0].learner.task.loss.targets == "classes":
        return {targets[0]: of_classes(found)}
    kinds = {name: kind_of_output(runs[0], output) for output, name in enumerate(output_names(runs[0]))}
    return {
        name: of_values(found, output) if kind == "values" else of_labels(found, output)
        for output, (name, kind) in enumerate(kinds.items())
    }


def outputs_of(kind: str, names: Sequence[str]) -> list[int]:
    """The outputs that have scores of their own."""
    return [0] if kind == "classes" else list(range(len(names)))
