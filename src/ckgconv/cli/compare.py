"""`ckgconv compare RUN RUN …`: metric, cost and curves of several runs, and whether groups of seeds differ."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.cli import terminal
from ckgconv.cli.study import PIPED_WIDTH, as_table
from ckgconv.files import valid_json
from ckgconv.studies.compare import PAIR_COLUMNS, RUN_COLUMNS, compare
from ckgconv.studies.report import Options, Report, Study, conduct, write_page


def compare_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or their record.json.")],
    out: Annotated[Path | None, typer.Option(help="Folder for README.md, figure.png and table.json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Compare runs: metrics, parameters, time, memory and curves; Welch's t-test between the seeds of two recipes."""
    study = Study("runs next to each other", lambda options: compare(options.runs), ("runs",))
    report, provenance = conduct(study, Options(runs=tuple(runs)), sys.argv[1:])
    if out is not None:
        write_page(out, report, provenance)
    if as_json:
        rows = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
        print(valid_json({"title": report.title, "recipes": rows, **report.values}))
        return
    console = terminal.console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    console.print(as_table(report))
    console.print(as_table(_of_runs(report)))
    if report.values["tests"]:
        console.print(as_table(_of_tests(report)))
    if out is not None:
        console.print(f"{out}: README.md, figure.png, table.json")


def _of_runs(report: Report) -> Report:
    """The table of single runs; folders are relative to the one that holds them all."""
    runs = report.values["runs"]
    shared = os.path.commonpath([Path(run["run"]).absolute().parent for run in runs])
    rows = [tuple({**run, "run": os.path.relpath(run["run"], shared)}.values()) for run in runs]
    return Report(f"Runs under {shared}", RUN_COLUMNS, rows, report.figure)


def _of_tests(report: Report) -> Report:
    """The tests between all pairs of recipes."""
    rows = [(test["first"], test["second"], test["verdict"]) for test in report.values["tests"]]
    return Report("Pairs of recipes", PAIR_COLUMNS, rows, report.figure)
