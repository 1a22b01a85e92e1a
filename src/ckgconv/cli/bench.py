"""`ckgconv bench RECIPE`: how fast training is on this machine, optionally compared with another checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.table import Table

from ckgconv.checks import InputError, require
from ckgconv.cli import terminal
from ckgconv.data import load
from ckgconv.engine.bench import measure
from ckgconv.engine.recipe_file import named_or_saved
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.nn.models import build_model
from ckgconv.recipes import with_value


def bench_command(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name or a recipe.json.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="Change any recipe value. Repeatable.")] = None,
    steps: Annotated[int, typer.Option(help="Steps to time.")] = 20,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str, typer.Option(help="32, tf32, bf16 or 64.")] = "32",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    against: Annotated[Path | None, typer.Option(help="Another checkout, to time for comparison.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Time the training of a recipe on its own data, by parts of a step."""
    require(steps > 0, f"--steps is {steps}: give at least 1.")
    chosen = named_or_saved(name)
    for setting in settings or []:
        chosen = with_value(chosen, setting)
    other: dict[str, Any] | None = None
    if against is not None:
        data_option = [] if data_dir is None else ["--data-dir", str(data_dir.resolve())]
        changes = [part for setting in settings or [] for part in ("--set", setting)]
        options = ["--steps", str(steps), "--device", device, "--precision", precision, *data_option, *changes]
        other = measured_elsewhere(against, [name, *options])
    fabric = make_fabric(device, precision)
    torch.manual_seed(0)
    learner = make_learner(fabric, build_model(chosen.model), load(chosen.data, data_dir), chosen)
    report: dict[str, Any] = {"recipe": chosen.name, **measure(learner, steps), "precision": precision}
    if as_json:
        print(json.dumps(report if other is None else {**report, "against": other}))
        return
    table = Table(title=f"{chosen.name} on {report['device']}", show_header=other is not None)
    for column in ("", "this", *(() if other is None else ("other", "other / this"))):
        table.add_column(column)
    for key, value in report.items():
        table.add_row(key, _formatted(value), *(() if other is None else _compared(value, other.get(key))))
    terminal.console().print(table)


def measured_elsewhere(checkout: Path, arguments: list[str]) -> dict[str, Any]:
    """The report of the same command, run from another checkout's source by this Python."""
    source = checkout / "src" if (checkout / "src").is_dir() else checkout
    require((source / "ckgconv").is_dir(), f"{checkout} does not contain ckgconv: give the folder of a checkout.")
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    command = [sys.executable, "-m", "ckgconv", "bench", *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    try:
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(f"The checkout {checkout} could not be timed (exit {done.returncode}): {last}") from error
    return report


def _formatted(value: Any) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)


def _compared(value: Any, other: Any) -> tuple[str, str]:
    if other is None:
        return "", ""
    ratio = f"{other / value:.2f}" if isinstance(value, float) and value else ""
    return _formatted(other), ratio
