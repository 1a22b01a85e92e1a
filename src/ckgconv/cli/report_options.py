"""The report that `ckgconv train` writes of a table, and the option that leaves it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from ckgconv.cli import terminal
from ckgconv.data.tables import is_table
from ckgconv.engine.run import Run
from ckgconv.report import write_report


@dataclass(frozen=True)
class ReportOptions:
    """Whether a report is written."""

    no_report: Annotated[bool, typer.Option("--no-report", help="Table: write no report.html.")] = False

    def write(self, runs: Sequence[Run], quiet: bool) -> None:
        """Write the report of each run of a table, and say where it is."""
        for run in runs:
            if self.no_report or run.folder is None or not is_table(run.recipe.data.name):
                continue
            console = terminal.console(stderr=quiet, soft_wrap=True)
            try:
                path = write_report(run)
            except Exception as error:  # whatever it is, the run itself is complete, and its command must say so
                again = f"'ckgconv report {run.folder}'"
                console.print(f"The report was not written ({error}); the run is complete, and {again} tries again.")
                continue
            if not quiet:
                console.print(f"report: {path}")
