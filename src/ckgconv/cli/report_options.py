"""The report that `ckgconv train` writes of a table, and the option that leaves it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.cli import terminal
from ckgconv.data.tables import is_table
from ckgconv.engine.run import Run
from ckgconv.report import FILE, write_report


@dataclass(frozen=True)
class ReportOptions:
    """Whether a report is written."""

    no_report: Annotated[bool, typer.Option("--no-report", help="Table: write no report.html.")] = False

    def write(self, runs: Sequence[Run], quiet: bool) -> None:
        """Write the report of each run of a table, and say where it is."""
        for run in runs:
            if run.folder is not None:
                self.write_together([run], run.folder, quiet)

    def write_together(self, runs: Sequence[Run], folder: Path, quiet: bool) -> None:
        """Write one report of runs that predict together."""
        if self.no_report or not is_table(runs[0].recipe.data.name):
            return
        console = terminal.console(stderr=quiet, soft_wrap=True)
        try:
            path = write_report(runs, folder / FILE)
        except Exception as error:  # any error: the run itself is complete, and its command must say so
            again = f"'ckgconv report {folder}'"
            console.print(f"The report was not written ({error}); the run is complete, and {again} tries again.")
            return
        if not quiet:
            console.print(f"report: {path}")
