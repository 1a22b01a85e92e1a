"""`ckgconv study NAME`: a study of the paper, its numbers beside ours, with a page and a figure."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ckgconv.checks import require
from ckgconv.studies import STUDIES, Options, Report, conduct, study, write_page
from ckgconv.studies.report import shown

RESULTS = Path("results/studies")


def _read_by(option: str) -> str:
    """Which studies an option belongs to, for the help."""
    return "Read by " + ", ".join(name for name, each in STUDIES.items() if option in each.reads) + "."


def study_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(STUDIES)}.")],
    out: Annotated[Path | None, typer.Option(help=f"Folder of the page, by default {RESULTS}/NAME.")] = None,
    seeds: Annotated[list[int] | None, typer.Option(help=f"--seeds 0 1 2. {_read_by('seeds')}")] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Epochs of each training. {_read_by('epochs')}")] = None,
) -> None:
    """Run a study, print its table, and write table.json, figure.png and README.md."""
    chosen = study(name)
    require(epochs is None or epochs > 0, f"--epochs is {epochs}: give at least 1.")
    require(len(set(seeds or [])) == len(seeds or []), "The same seed was given twice: give each once.")
    options = Options(seeds=None if seeds is None else tuple(seeds), epochs=epochs)
    report, provenance = conduct(chosen, options, sys.argv[1:])
    folder = RESULTS / name if out is None else out
    write_page(folder, report, provenance)
    console = Console()
    console.print(as_table(report))
    console.print(f"{folder}: README.md, figure.png, table.json ({provenance.seconds:.0f} s)")


def as_table(report: Report) -> Table:
    """The table of a report for the terminal."""
    table = Table(title=report.title)
    for column in report.columns:
        table.add_column(column)
    for row in report.rows:
        table.add_row(*(shown(cell) for cell in row))
    return table
