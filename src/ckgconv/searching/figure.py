"""The figure of a search: history, importance of each setting, and slices."""

import math
import warnings
from pathlib import Path
from typing import Any

from ckgconv.files import write_whole
from ckgconv.searching.search import ended
from ckgconv.searching.study import SearchFolder

COMPLETE, PRUNED, BEST = "#2b6ca3", "#b9bec6", "#d1495b"
# With fewer, an importance says next to nothing.
LEAST_TRIALS = 4
COLUMNS = 3


def importances(study: Any) -> dict[str, float]:
    """Share of the spread of the outcomes that each setting explains (fANOVA); empty where that is not defined."""
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    values = [each.value for each in ended(study) if each.state.name == "COMPLETE"]
    if len(values) < LEAST_TRIALS or len(set(values)) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
        except (ValueError, RuntimeError):
            return {}
    return {name: float(value) for name, value in found.items()}


def draw_search(search: SearchFolder, study: Any, path: Path) -> None:
    """Write search.png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    trials, paths = ended(study), list(search.space.entries)
    rows = 1 + math.ceil(len(paths) / COLUMNS)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=(11, 2.9 * rows), layout="constrained", squeeze=False)
    grid = axes[0, 0].get_gridspec()
    for each in axes[0]:
        each.remove()
    _history(figure.add_subplot(grid[0, :2]), search, study, trials)
    _importance(figure.add_subplot(grid[0, 2]), importances(study))
    slices = [each for row in axes[1:] for each in row]
    for axis, name in zip(slices, paths, strict=False):
        _slice(axis, name, trials, study, search.recipe.training.metric)
        entry = search.space.entries[name]
        if entry.get("log"):
            _logarithmic(axis, entry["low"], entry["high"])
    for axis in slices[len(paths) :]:
        axis.remove()
    count = len([each for each in trials if each.state.name == "COMPLETE"])
    figure.suptitle(f"{search.recipe.name}: {len(trials)} trials, {count} trained to the end", fontsize=12)
    write_whole(path, lambda part: figure.savefig(part, dpi=110, format="png"))
    pyplot.close(figure)


def _history(axis: Any, search: SearchFolder, study: Any, trials: list[Any]) -> None:
    from matplotlib.ticker import MaxNLocator

    complete = [each for each in trials if each.state.name == "COMPLETE"]
    pruned = [each for each in trials if each.state.name == "PRUNED"]
    axis.plot([each.number for each in complete], [each.value for each in complete], "o", color=COMPLETE, label="trial")
    last = [(each.number, each.intermediate_values[max(each.intermediate_values)]) for each in pruned]
    if last:
        axis.plot(*zip(*last, strict=True), "x", color=PRUNED, label="pruned, its last validation")
    best: list[float] = []
    choose = max if search.higher_is_better else min
    for each in complete:
        best.append(each.value if not best else choose(best[-1], each.value))
    axis.step([each.number for each in complete], best, where="post", color=BEST, label="best so far")
    axis.set_xlabel("trial")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.set_ylabel(f"validation {search.recipe.training.metric}")
    axis.legend(fontsize=8, frameon=False)
    axis.set_title("History", fontsize=10, loc="left")


def _importance(axis: Any, found: dict[str, float]) -> None:
    axis.set_title("Importance of each setting", fontsize=10, loc="left")
    if not found:
        axis.text(0.5, 0.5, "too few trials", ha="center", va="center", transform=axis.transAxes)
        axis.set_axis_off()
        return
    names = sorted(found, key=lambda name: found[name])
    axis.barh(
        [name.removeprefix("model.").removeprefix("training.") for name in names], [found[each] for each in names]
    )
    axis.tick_params(axis="y", labelsize=8)
    axis.set_xlabel("share of the spread")


def _slice(axis: Any, name: str, trials: list[Any], study: Any, metric: str) -> None:
    """The outcome of every trial by its value of one setting."""
    known = [each for each in trials if each.state.name == "COMPLETE" and name in each.params]
    values = [each.params[name] for each in known]
    axis.set_title(name, fontsize=10, loc="left")
    axis.set_ylabel(metric, fontsize=8)
    if not known:
        return
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in values):
        places = values
    else:
        order = sorted({str(each) for each in values})
        places = [order.index(str(each)) for each in values]
        axis.set_xticks(range(len(order)), order)
    axis.plot(places, [each.value for each in known], "o", color=COMPLETE, alpha=0.7, markersize=4)
    best = [place for place, each in zip(places, known, strict=True) if each.number == study.best_trial.number]
    axis.plot(best, [study.best_value] * len(best), "o", color=BEST, markersize=6)


def _logarithmic(axis: Any, low: float, high: float) -> None:
    """Labels at the ends of the range and in its middle: those of decades overlap, or are none."""
    axis.set_xscale("log")
    places = [low, math.sqrt(low * high), high]
    axis.set_xticks(places, [f"{place:.2g}" for place in places])
    axis.set_xticks([], minor=True)
    axis.set_xlim(low / 1.1, high * 1.1)
