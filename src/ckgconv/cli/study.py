"""`ckgconv study NAME`: a study of the paper, with its numbers next to ours, a page and a figure."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ckgconv.checks import require
from ckgconv.cli import terminal
from ckgconv.studies import STUDIES, Options, Report, conduct, study, write_page
from ckgconv.studies.report import shown

RESULTS = Path("results/studies")
PIPED_WIDTH = 120


def _read_by(option: str) -> str:
    """The studies that read an option, for its help text."""
    return "Read by " + ", ".join(name for name, each in STUDIES.items() if option in each.reads) + "."


def _data_sets() -> str:
    """What --data may name, by study."""
    return (
        "; ".join(f"{name}: {' or '.join(each.data)}" for name, each in STUDIES.items() if "data" in each.reads) + "."
    )


def study_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(STUDIES)}.")],
    out: Annotated[Path | None, typer.Option(help=f"Folder for the page, by default {RESULTS}/NAME.")] = None,
    seeds: Annotated[list[int] | None, typer.Option(help=f"--seeds 0 1 2. {_read_by('seeds')}")] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Epochs of each training. {_read_by('epochs')}")] = None,
    runs: Annotated[list[Path] | None, typer.Option(help=f"Folders of runs. {_read_by('runs')}")] = None,
    against: Annotated[
        list[Path] | None, typer.Option(help=f"Runs to compare with, by default the paper's. {_read_by('against')}")
    ] = None,
    ckgcn: Annotated[list[Path] | None, typer.Option(help=f"Runs of that kind. {_read_by('ckgcn')}")] = None,
    grit: Annotated[list[Path] | None, typer.Option(help=f"Runs of that kind. {_read_by('grit')}")] = None,
    data: Annotated[str | None, typer.Option(help=f"Only this data set. {_data_sets()}")] = None,
    device: Annotated[str, typer.Option(help=f"auto, cpu or cuda. {_read_by('device')}")] = "auto",
    precision: Annotated[str, typer.Option(help=f"32, tf32, bf16 or 64. {_read_by('precision')}")] = "32",
    keep: Annotated[Path | None, typer.Option(help=f"Folder in which to keep the runs. {_read_by('keep')}")] = None,
    workers: Annotated[int, typer.Option(min=1, help=f"Runs at a time. {_read_by('workers')}")] = 1,
    data_dir: Annotated[Path | None, typer.Option(help=f"Where packed files are. {_read_by('data_dir')}")] = None,
) -> None:
    """Run a study, print its table, and write table.json, figure.png and README.md."""
    chosen = study(name)
    require(epochs is None or epochs > 0, f"--epochs is {epochs}: give at least 1.")
    require(all(seed >= 0 for seed in seeds or []), "A seed is negative: give whole numbers from 0 on.")
    require(len(set(seeds or [])) == len(seeds or []), "The same seed was given twice: give each once.")
    require(
        out is not None or not (runs and "against" in chosen.reads),
        f"--runs was given without --out, and {RESULTS}/{name} is for the paper's numbers: add --out.",
    )
    require(data in (None, *chosen.data), f"--data is {data!r}: choose {' or '.join(chosen.data)}.")
    options = Options(
        seeds=None if seeds is None else tuple(seeds),
        epochs=epochs,
        runs=tuple(runs or []),
        against=tuple(against or []),
        data=data,
        device=device,
        precision=precision,
        keep=keep,
        workers=workers,
        data_dir=data_dir,
        ckgcn=tuple(ckgcn or []),
        grit=tuple(grit or []),
        out=RESULTS / name if out is None else out,
    )
    report, provenance = conduct(chosen, options, sys.argv[1:])
    folder = options.out or RESULTS / name
    write_page(folder, report, provenance)
    # Rich would fold the columns at 80 characters in a log or a pipe.
    console = terminal.console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    console.print(as_table(report))
    console.print(f"{folder}: README.md, figure.png, table.json ({provenance.seconds:.1f} s)")


def as_table(report: Report) -> Table:
    """The table of a report, for the terminal."""
    table = Table(title=report.title)
    for column in report.columns:
        table.add_column(column, overflow="fold")
    for row in report.rows:
        table.add_row(*(shown(cell) for cell in row))
    return table
