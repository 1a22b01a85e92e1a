"""What a study is, and the page it writes.

A study is a function `(Options) -> Report`, entered in the dictionary of `ckgconv.studies` together with the options
it reads. `conduct` runs it and adds where the numbers come from; `write_page` writes `table.json`, `README.md` and
`figure.png` in a folder.
"""

import json
import shlex
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from ckgconv.checks import require
from ckgconv.engine.machine import commit, device_name, versions
from ckgconv.files import write_text, write_whole

Cell = str | int | float | None
# Inches: at 130 dots each a figure is 1,040 pixels wide and stays legible at the 800 of a README.
WIDTH = 8.0
DOTS = 130


@dataclass(frozen=True)
class Options:
    """What a user may change about a study; None or empty: as in the paper."""

    seeds: tuple[int, ...] | None = None
    epochs: int | None = None
    runs: tuple[Path, ...] = ()  # run folders or record.json files
    against: tuple[Path, ...] = ()  # the runs they are compared with
    data: str | None = None  # of the data sets that the paper's table has
    device: str = "auto"
    precision: str = "32"
    keep: Path | None = None  # where training runs are kept, to be resumed
    workers: int = 1  # concurrent runs
    data_dir: Path | None = None  # where packed files are
    ckgcn: tuple[Path, ...] = ()  # run folders by the kind of their model
    grit: tuple[Path, ...] = ()
    out: Path | None = None  # folder of the page, in which a study may keep what it computed


@dataclass(frozen=True)
class Origin:
    """What computed numbers: commit, device, versions of packages, and how many seconds they needed."""

    commit: str | None
    device: str
    versions: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class Report:
    """The outcome of a study.

    Args:
        title: the finding, a sentence.
        columns, rows: the table of the page, the paper's numbers next to ours.
        figure: the picture, its title the finding too.
        notes: paragraphs of Markdown under the table: the setting, and why a number differs from the paper's.
        values: raw numbers for `table.json`, every seed included.
        seeds: those that were drawn from; empty where nothing is random.
        origin: what computed the numbers; None: this process.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    figure: Figure
    notes: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    origin: Origin | None = None  # None: computed here and now


@dataclass(frozen=True)
class Study:
    """A study by name: what it shows in one line, its function, the fields of `Options` it reads, and its data sets."""

    shows: str
    run: Callable[[Options], Report]
    reads: tuple[str, ...] = ()
    data: tuple[str, ...] = ("zinc", "pattern")  # what the option `data` may name


@dataclass(frozen=True)
class Provenance(Origin):
    """Where the numbers of a report come from, and how to get them again."""

    command: str
    seeds: tuple[int, ...]


def conduct(study: Study, options: Options, arguments: Sequence[str]) -> tuple[Report, Provenance]:
    """Run a study; `arguments` are those of `ckgconv`, as a user would type them again."""
    for name, default in asdict(Options()).items():
        given = name != "out" and getattr(options, name) != default
        spelled = name.replace("_", "-")
        require(
            not given or name in study.reads, f"--{spelled} was given, but this study does not read it: leave it out."
        )
    start = time.perf_counter()
    report = study.run(options)
    seconds = round(time.perf_counter() - start, 2)
    origin = report.origin or Origin(commit(), device_name(torch.device("cpu")), versions(), seconds)
    command = shlex.join(["ckgconv", *arguments])
    return report, Provenance(**asdict(origin), command=command, seeds=report.seeds)


def write_page(folder: Path, report: Report, provenance: Provenance) -> None:
    """table.json, figure.png and README.md under `folder`."""
    table = {
        "title": report.title,
        "columns": report.columns,
        "rows": report.rows,
        "values": report.values,
        **asdict(provenance),
    }
    write_text(folder / "table.json", json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    write_whole(folder / "figure.png", lambda part: report.figure.savefig(part, dpi=DOTS, format="png"))
    write_text(folder / "README.md", page(report, provenance))


def page(report: Report, provenance: Provenance) -> str:
    """The README.md of a study."""
    lines = [
        f"# {report.title}",
        f"![{report.title}](figure.png)",
        markdown_table(report.columns, report.rows),
        *report.notes,
        f"This page, its figure and `table.json` (every value) are written by\n\n    {provenance.command}\n\n"
        f"{_computed(provenance)}",
    ]
    return "\n\n".join(lines) + "\n"


def _computed(provenance: Provenance) -> str:
    """Where the numbers of a page come from."""
    if not provenance.versions:
        return "from what is kept: no run has ended."
    seeds = "" if not provenance.seeds else f", seeds {', '.join(map(str, provenance.seeds))}"
    packages = ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    return (
        f"from what was computed at commit {provenance.commit or 'unknown'}{seeds}; {provenance.seconds:.1f} s on "
        f"{provenance.device}; {packages}."
    )


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Rows of Markdown."""
    lines = [columns, ["---"] * len(columns), *([shown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(cell: Cell) -> str:
    """A cell of the page: four digits of a number, a dash for None."""
    if cell is None:
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def spread(values: Sequence[float]) -> str:
    """Mean ± s.d. over seeds; the deviation divides by n, as that of the paper's toy tables does."""
    return f"{statistics.mean(values):.3g} ± {statistics.pstdev(values):.2g}"


def new_figure(height: float) -> Figure:
    """An empty figure of README width, `height` inches high; no global state of the plotting library is touched."""
    return Figure(figsize=(WIDTH, height), layout="constrained")
