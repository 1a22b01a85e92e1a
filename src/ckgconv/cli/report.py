"""`ckgconv report RUN`: the page of a run, written again."""

from pathlib import Path
from typing import Annotated

import typer

from ckgconv.checks import require
from ckgconv.cli import processes, terminal
from ckgconv.engine.members import member_folders
from ckgconv.engine.opened import open_run
from ckgconv.engine.trained import TRAINED, run_folder
from ckgconv.files import check_names_file, valid_json
from ckgconv.report import FILE, write_report


def report_command(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help=f"Folder of a run or an ensemble, or one of {', '.join(TRAINED)}.")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="HTML to write, by default report.html in RUN.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the path as JSON.")] = False,
) -> None:
    """Write a page about a run: data, splits, curves, errors, uncertainty, worst molecules, explanations, settings.

    The page is one file that opens from disk. Where the data is no table of molecules, it is a shorter one.
    """
    place = run_folder(folder) / FILE if out is None else out
    check_names_file(place)
    ends = place.suffix.lower() in (".html", ".htm")
    require(ends or not place.is_file(), f"{place} is no .html, and would be replaced: choose another name with -o.")
    runs = [open_run(each, device, data=data_dir) for each in member_folders(folder)]
    if not processes.is_first():
        return
    written = write_report(runs, place)
    if as_json:
        print(valid_json({"report": str(written)}))
    else:
        terminal.console(soft_wrap=True).print(f"report: {written}")
