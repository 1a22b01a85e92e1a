"""Options of `ckgconv train` for ensembles, and their training with a bar per member."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ckgconv.checks import require
from ckgconv.cli import processes, terminal
from ckgconv.cli.curve import draw_curve
from ckgconv.cli.terminal import plain
from ckgconv.cli.train_report import summary
from ckgconv.engine.ensemble import Ensemble
from ckgconv.engine.repeated import mean_and_deviation
from ckgconv.engine.run import Run
from ckgconv.engine.setup import process_count
from ckgconv.engine.side_by_side import Told
from ckgconv.files import valid_json
from ckgconv.uncertainty.train_ensemble import EnsembleJob, train_ensemble


@dataclass(frozen=True)
class EnsembleOptions:
    """How many networks predict together."""

    ensemble_size: Annotated[
        int | None,
        typer.Option("--ensemble-size", "--ensemble", help="Train this many members with consecutive seeds, as one."),
    ] = None
    at_once: Annotated[
        int | None, typer.Option("--at-once", help="Members trained at the same time, by default one per core.")
    ] = None

    def check(self, seeds: list[int], folds: int | None) -> None:
        """Refuse what does not belong to an ensemble, or only to one."""
        if self.ensemble_size is None:
            require(self.at_once is None, "--at-once belongs to an ensemble: give --ensemble-size too.")
            return
        require(folds is None, "--folds and --ensemble-size were given: choose one of them.")
        require(len(seeds) == 1, "Several seeds and --ensemble-size were given: give the first member's seed.")
        require(process_count() == 1, "--ensemble-size starts processes of its own: do not start it with torchrun.")


class Bars:
    """One line per member."""

    def __init__(self, job: EnsembleJob, quiet: bool) -> None:
        self.job, self.tasks = job, dict[int, TaskID]()
        self.console = terminal.console(stderr=quiet)
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[val]}"), TimeRemainingColumn()
        self.progress = Progress(*columns, console=self.console, disable=quiet)

    def told(self, told: Told) -> None:
        """Move a bar, or print a warning, which every member has, once."""
        if told.kind == "warning":
            if told.place == 0:
                print(plain(told.sentence), file=sys.stderr)
            return
        epochs = self.job.recipe.training.epochs
        if told.place not in self.tasks:
            self.tasks[told.place] = self.progress.add_task(f"member {told.place}", total=epochs, val="")
        if told.epoch is not None:
            val = f"val {told.epoch.val:.4f}"
            self.progress.update(self.tasks[told.place], completed=told.epoch.epoch + 1, val=val)


def train_members(job: EnsembleJob, as_json: bool) -> list[Run]:
    """Train an ensemble, and print what it says together."""
    bars = Bars(job, as_json)
    with bars.progress:
        runs = train_ensemble(job, bars.told)
    for run in runs:
        assert run.folder is not None
        draw_curve(run.record, run.folder / "curve.png")
    if processes.is_first():
        report_ensemble(job.folder, runs, as_json)
    return runs


def report_ensemble(folder: Path, runs: list[Run], as_json: bool) -> None:
    """The test metric of the mean, and of the members alone."""
    tested = len(runs[0].learner.data.target_rows("test")) > 0
    found = Ensemble(runs).evaluate("test" if tested else "val")
    if as_json:
        print(valid_json({"ensemble": str(folder), **asdict(found), "runs": [summary(run) for run in runs]}))
        return
    console = terminal.console(soft_wrap=True)
    console.print(f"{found.split} {found.metric} {found.value:.4f} by the mean of {len(runs)} members")
    console.print(
        f"members alone {mean_and_deviation(found.members)}; s.d. between their predictions {found.spread:.4f}"
    )
    console.print(f"ensemble: {folder}")
