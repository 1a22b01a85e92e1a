"""Sections of a report about the network: curves, scores with their figures, intervals and calibration."""

import numpy as np
import torch

from ckgconv.data.packed import widened
from ckgconv.engine.baseline import majority_predictor, mean_predictor
from ckgconv.engine.ensemble import metric_of
from ckgconv.report.element import Html, element, figure, table
from ckgconv.report.figures import confusion, coverage_curve, curves, parity, reliability, roc_and_precision
from ckgconv.report.scores import Reliable, by_split, most_probable, outputs_of, reliable, shown, word
from ckgconv.report.source import Predicted, Source, Values
from ckgconv.uncertainty import Predictor
from ckgconv.uncertainty.intervals import coverage
from ckgconv.uncertainty.predictor import LEVEL

MOST_TARGETS = 6
MOST_CLASSES = 20
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def curves_section(source: Source) -> Html:
    """Loss and metric by epoch, of every member."""
    found = []
    for place, run in enumerate(source.runs):
        record, best = run.record, run.record.best
        if not record.epochs:
            continue
        which = f"Member {place}: " if len(source.runs) > 1 else ""
        says = f"{which}{len(record.epochs)} epochs"
        if best is not None:
            says += f"; the best validation {word(record.metric)}, {best.val:#.4g}, is that of epoch {best.epoch + 1}"
        found.append(figure(curves(record), f"{says}."))
    return element("section", element("h2", "Training"), element("div", *found, class_="figures"), id="training")


def baseline_of(source: Source) -> tuple[str, float] | None:
    """What predicting without a network scores on the test split, in the run's metric."""
    for words, baseline in (
        ("always the training mean", mean_predictor),
        ("always the most frequent class", majority_predictor),
    ):
        value = baseline(source.run)
        if value is not None:
            return words, value
    return None


def scores_section(source: Source) -> Html:
    """Scores by split, and a figure of the test split, for every target."""
    parts = []
    outputs = outputs_of(source.kind, source.names)
    for output in outputs:
        found = by_split(source.kind_of(output), source.splits, output)
        if not found:
            continue
        header = ["split", *(word(each) for each in next(iter(found.values())))]
        rows = [[name, *(shown(value) for value in each.values())] for name, each in found.items()]
        title = source.names[output] if source.kind != "classes" else source.targets
        parts.append(element("h3", title))
        parts.append(table(header, rows))
        if output < MOST_TARGETS:
            parts.append(_figure(source, output, title))
    hidden = len(outputs) - MOST_TARGETS
    if hidden > 0:
        parts.append(element("p", f"Figures are drawn for the first {MOST_TARGETS} targets."))
    says = element(
        "p", "By the network of the best validation epoch. Validation rows chose the epoch; test rows chose nothing."
    )
    return element("section", element("h2", "Predictions"), says, *parts, id="predictions")


def _figure(source: Source, output: int, title: str) -> Html:
    test = source.splits.get("test") or source.splits.get("val")
    if test is None:
        return Html("")
    known = test.known(output)
    if not known.any():
        return Html("")
    true, found, kind = test.target[known, output], test.values[known], source.kind_of(output)
    if kind == "values":
        parts = {
            name: (each.target[each.known(output), output], each.values[each.known(output), output])
            for name, each in source.splits.items()
            if name != "train" and each.known(output).any()
        }
        mean = float((found[:, output] - true).mean())
        says = f"Predicted and true {title}, and the errors: on average predictions are {abs(mean):.2g} too "
        says += "high." if mean > 0 else "low."
        return element("div", figure(parity(parts, title), says), class_="figures")
    if kind == "labels":
        if len(np.unique(true)) < 2:
            return element("p", "All known test rows have the same label, so there is no curve to draw.")
        says = f"{title}: {int(true.sum())} of {len(true)} rows are positive; how many are found, and at what price."
        return element("div", figure(roc_and_precision(true, found[:, output]), says), class_="figures")
    names = source.classes
    if len(names) > MOST_CLASSES:
        return element("p", f"{len(names)} classes are too many to draw their confusion.")
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, (true.astype(int), most_probable(found)), 1)
    right = int(counts.trace())
    says = f"{right} of {len(true)} rows have the class that is predicted for them."
    return element("div", figure(confusion(counts, names), says), class_="figures")


def uncertainty_section(source: Source) -> Html:
    """How far intervals or probabilities hold on the test rows; fitted on validation rows."""
    test = source.splits.get("test")
    if source.uncertainty is None or test is None:
        return Html("")
    predictor = Predictor(source.runs, source.uncertainty)
    parts = [*_intervals(source, predictor, test), *_calibrations(source, predictor, test)]
    notes = [element("p", note) for note in predictor.notes]
    if not parts and not notes:
        return Html("")
    title = {"values": "Intervals", "mixed": "Intervals and calibration"}.get(source.kind, "Calibration")
    return element("section", element("h2", title), element("div", *parts, class_="figures"), *notes, id="uncertainty")


def _intervals(source: Source, predictor: Predictor, test: Predicted) -> list[Html]:
    assert source.uncertainty is not None
    found = []
    for output, name in enumerate(source.names[:MOST_TARGETS]):
        by_level = []
        for level in LEVELS:
            own = Predictor(source.runs, source.uncertainty, level)
            lower, upper = own.interval(test.values, test.deviation)
            if lower is not None and upper is not None:
                by_level.append(coverage(level, lower, upper, test.target)[output])
        defined = [each for each in by_level if np.isfinite(each.share)]
        if not defined:
            continue
        at = min(defined, key=lambda each: abs(each.level - LEVEL))
        says = f"{name}: intervals of level {at.level:.0%} contain {at.share:.0%} of {at.rows} test values."
        found.append(figure(coverage_curve([each.level for each in defined], [each.share for each in defined]), says))
        lines = [(f"{each.level:.0%}", f"{each.share:.0%}", f"{each.width:.3g}") for each in defined]
        found.append(table(("level", "contain the truth", f"mean width, {name}"), lines))
    return found


def _calibrations(source: Source, predictor: Predictor, test: Predicted) -> list[Html]:
    calibrated = predictor.calibrated(test.values)
    if source.kind == "classes" and test.values.shape[1] > 1:
        return _calibration_of_classes(test, calibrated)
    found = []
    for output, name in enumerate(source.names[:MOST_TARGETS]):
        known = test.known(output)
        if not known.any() or source.kind_of(output) == "values":
            continue
        true = test.target[known, output]
        parts: dict[str, Reliable] = {"as trained": reliable(true, test.values[known, output])}
        if calibrated is not None and np.isfinite(calibrated[known, output]).all():
            parts["calibrated"] = reliable(true, calibrated[known, output])
        drawn = reliability({key: (each.predicted, each.observed) for key, each in parts.items()})
        gaps = " and ".join(f"{each.error:.3f} {key}" for key, each in parts.items())
        found.append(figure(drawn, f"{name}: probabilities miss observed frequencies by {gaps}, on average over bins."))
    return found


def _calibration_of_classes(test: Predicted, calibrated: Values | None) -> list[Html]:
    """How often the most probable class is right, over its probability."""
    known = test.known(0)
    if not known.any():
        return []
    right = (most_probable(test.values[known]) == test.target[known, 0]).astype(np.float64)
    parts = {"as trained": reliable(right, test.values[known].max(1))}
    if calibrated is not None and np.isfinite(calibrated[known]).all():
        parts["calibrated"] = reliable(right, calibrated[known].max(1))
    drawn = reliability({key: (each.predicted, each.observed) for key, each in parts.items()})
    gaps = " and ".join(f"{each.error:.3f} {key}" for key, each in parts.items())
    says = f"The most probable class: its probability misses how often it is right by {gaps}, on average over bins."
    return [figure(drawn, says)]


def summary(source: Source) -> Html:
    """The result in a sentence: what was learned from what, the test metric, and what no network would score."""
    record = source.run.record
    kind = {"values": "Regression", "mixed": "Regression and classification"}.get(source.kind, "Classification")
    rows = sum(len(each.graphs) for each in source.splits.values())
    says = f"{kind} of {source.targets}, {rows:,} rows."
    value, metric = tested(source), word(record.metric)
    if record.metric == "mixed_score":
        metric += " (the mean over targets of R², AUROC, and mean recall of classes)"
    elif record.metric == "auroc" and len(source.names) > 1 and "test" in source.splits:
        metric += f" (the mean over the {_with_both(source.splits['test'])} targets with both labels there)"
    if value is not None:
        says += f" On {len(source.splits['test'].graphs):,} test rows the {metric} is {value:.3g}"
        baseline = baseline_of(source)
        chance = "; that of chance is 0.5" if record.metric == "auroc" else ""
        says += chance if baseline is None else f"; {baseline[0]} would have {baseline[1]:.3g}"
        says += "."
    return element("p", says, class_="lead")


def _with_both(predicted: Predicted) -> int:
    """Labels of which both values occur, without which there is no ranking to judge."""
    outputs = range(predicted.target.shape[1])
    return sum(len(np.unique(predicted.target[predicted.known(output), output])) == 2 for output in outputs)


def tested(source: Source) -> float | None:
    """The run's metric on the test split, of all members together."""
    if "test" not in source.splits:
        return None
    if len(source.runs) == 1:
        return source.run.record.test
    outcome = torch.from_numpy(source.splits["test"].values)
    target = source.data.y[source.data.target_rows("test").sort().values] if source.data.y is not None else None
    return None if target is None else metric_of(source.run.learner.task, outcome, widened(target).cpu())
