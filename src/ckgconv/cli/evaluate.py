"""`ckgconv evaluate RUN`: the metric of the best network of a run on a split."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ckgconv.cli import processes
from ckgconv.engine.run import open_run
from ckgconv.files import valid_json


def evaluate_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Evaluate the best network of a run."""
    run = open_run(folder, device, data=data_dir)
    value = run.evaluate(split)
    metric = run.record.metric
    if not processes.is_first():
        return
    if as_json:
        print(valid_json({"run": str(folder), "split": split, "metric": metric, "value": value}))
        return
    Console().print(f"{split} {metric} {value:.4f}")
