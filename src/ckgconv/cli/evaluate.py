"""`ckgconv evaluate RUN …`: the metric of the best network of a run on a split, or of the mean of several runs."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.cli import processes, terminal
from ckgconv.engine.ensemble import Evaluated, open_runs
from ckgconv.engine.folds import spread_of
from ckgconv.engine.opened import open_run
from ckgconv.engine.trained import TRAINED
from ckgconv.files import valid_json


def evaluate_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help=f"Folder of a run, or one of {', '.join(TRAINED)}; several: an ensemble."
        ),
    ],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Evaluate the best network of a run; of several runs, the mean and the median of their predictions."""
    if len(folders) > 1:
        found = open_runs(folders, device, data=data_dir).evaluate(split)
        if processes.is_first():
            _show(found, folders, as_json)
        return
    run = open_run(folders[0], device, data=data_dir)
    value = run.evaluate(split)
    metric = run.record.metric
    if not processes.is_first():
        return
    if as_json:
        print(valid_json({"run": str(folders[0]), "split": split, "metric": metric, "value": value}))
        return
    terminal.console().print(f"{split} {metric} {value:.4f}")


def _show(found: Evaluated, folders: list[Path], as_json: bool) -> None:
    if as_json:
        print(valid_json({"runs": [str(folder) for folder in folders], **asdict(found)}))
        return
    console = terminal.console()
    console.print(
        f"{found.split} {found.metric} {found.value:.4f} by the mean of {len(folders)} runs, {found.median:.4f} by "
        f"their median"
    )
    for folder, value in zip(folders, found.members, strict=True):
        console.print(f"  {value:.4f} {folder}")
    console.print(f"members alone {spread_of(found.members)}; s.d. between their predictions {found.spread:.4f}")
    console.print(_costs(found))


def _costs(found: Evaluated) -> str:
    cost = found.cost
    training = "unknown seconds" if cost.training_s is None else f"{cost.training_s:,.0f} s"
    memory = "unknown memory" if cost.peak_memory_mb is None else f"{cost.peak_memory_mb:,} MB"
    return (
        f"together {cost.parameters:,} parameters, {training} and {memory} of training, {cost.predicting_s:.1f} s of "
        f"prediction"
    )
