"""What `ckgconv train` prints when runs have ended: in words, or as JSON."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from ckgconv.cli import terminal
from ckgconv.cli.curve import sparkline
from ckgconv.engine.baseline import majority_predictor, mean_predictor
from ckgconv.engine.folds import FoldedRuns
from ckgconv.engine.replicates import Replicates
from ckgconv.engine.run import Run
from ckgconv.files import valid_json

Repeated = TypeVar("Repeated", FoldedRuns, Replicates)


def summary(run: Run) -> dict[str, object]:
    """The outcome of a run, for --json."""
    record = run.record
    return {
        "recipe": run.recipe.name,
        "seed": record.seed,
        "metric": record.metric,
        "best": record.to_json()["best"],
        "last": record.to_json().get("last"),
        "averaged": record.to_json().get("averaged"),
        "metrics": record.metrics,
        "rows": None if run.rows is None else run.rows.counts,
        "paper_test": list(run.recipe.paper_test),
        "mean_predictor": mean_predictor(run),
        "majority_predictor": majority_predictor(run),
        "wall_s": record.wall_s,
        "device": record.device,
        "run": str(run.folder),
    }


def report(run: Run, console: Console) -> None:
    """Print the outcome of a run."""
    best, metric = run.record.best, run.record.metric
    if best is not None:
        test = "no test split" if best.test is None else f"test {metric} {best.test:.4f}"
        console.print(f"best epoch {best.epoch + 1}: validation {metric} {best.val:.4f}, {test}")
    for split, metrics in (run.record.metrics or {}).items():
        words = "validation" if split == "val" else split
        console.print(f"{words}: " + ", ".join(f"{name} {value:.4f}" for name, value in metrics.items()))
    for name, ending in (("last epoch", run.record.last), ("mean of {} epochs' weights", run.record.averaged)):
        if ending is not None and ending.test is not None:
            what = name.format(f"the last {ending.epochs}")
            console.print(f"{what}: validation {metric} {ending.val:.4f}, test {metric} {ending.test:.4f}")
    for guess, baseline in (("training mean", mean_predictor), ("most frequent class", majority_predictor)):
        value = baseline(run)
        if value is not None:
            console.print(f"always the {guess}: test {metric} {value:.4f}")
    if run.recipe.paper_test:
        published = " ± ".join(f"{value:.4f}" for value in run.recipe.paper_test)
        console.print(f"paper, its full recipe: test {metric} {published}")
    console.print(f"validation {metric} by epoch: {sparkline([entry.val for entry in run.record.epochs])}")
    console.print(f"run: {run.folder}   curve: {run.folder}/curve.png")


def finish_replicates(found: list[Replicates], folders: list[Path], as_json: bool) -> None:
    """Write replicates.json of every seed, and print mean and s.d. over the seeds of its split."""
    for replicates, folder in zip(found, folders, strict=True):
        replicates.write(folder)
    _print_repeated(found, folders, as_json, _lines_of_replicates)


def _lines_of_replicates(found: Replicates) -> Iterator[str]:
    for name, tested in {found.metric: found.tested, **found.others}.items():
        yield f"test {name} over {len(found.runs)} splits: {tested}, each at its best validation epoch"


def finish_folds(found: list[FoldedRuns], folders: list[Path], as_json: bool) -> None:
    """Write folds.json of every seed, and print mean and s.d. over its folds."""
    for folded, folder in zip(found, folders, strict=True):
        folded.write(folder)
    _print_repeated(found, folders, as_json, _lines_of_folds)


def _lines_of_folds(found: FoldedRuns) -> Iterator[str]:
    metric = found.metric
    yield f"test {metric} over {len(found.runs)} folds: {found.tested}, each at its best validation epoch"
    yield (
        f"validation {metric} at epoch {found.common_epoch + 1}, the best on average over the folds: "
        f"{found.at_common_epoch}"
    )


def _print_repeated(
    found: Sequence[Repeated], folders: list[Path], as_json: bool, lines: Callable[[Repeated], Iterator[str]]
) -> None:
    """Folds or replicates of every seed: their `lines`, and where their runs are; or all of it as JSON."""
    if as_json:
        results = [each.to_json() | {"runs": [summary(run) for run in each.runs]} for each in found]
        print(valid_json(results if len(results) > 1 else results[0]))
        return
    console = terminal.console(soft_wrap=True)
    for each, folder in zip(found, folders, strict=True):
        for line in lines(each):
            console.print(line)
        console.print(f"runs: {folder}/{each.name}0 … {each.name}{len(each.runs) - 1}")


def report_seeds(runs: list[Run]) -> None:
    """Print mean and s.d. over the seeds, where all runs have a test metric."""
    tests = [run.record.test for run in runs]
    known = [test for test in tests if test is not None]
    if len(known) == len(runs):
        tested = f"{statistics.mean(known):.4f} ± {statistics.stdev(known):.4f}"
        terminal.console().print(f"test {runs[0].record.metric} over {len(known)} seeds: {tested}")
