"""`ckgconv bench RECIPE`: how fast a training step is on this machine."""

import json
import statistics
import time
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table

from ckgconv.checks import require
from ckgconv.data import load
from ckgconv.engine.batches import training_batches
from ckgconv.engine.learner import Learner
from ckgconv.engine.loop import training_step
from ckgconv.engine.record import device_name, peak_memory_mb
from ckgconv.engine.run import make_learner, named_or_saved
from ckgconv.engine.setup import make_fabric
from ckgconv.nn import CKGCN
from ckgconv.recipes import with_value

COPY_BYTES = 2**28


def bench_command(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name or a recipe.json.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="Change any recipe value. Repeatable.")] = None,
    steps: Annotated[int, typer.Option(help="Steps to time.")] = 20,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str, typer.Option(help="32, tf32, bf16 or 64.")] = "32",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Time training steps of a recipe on its own data."""
    require(steps > 0, f"--steps is {steps}: give at least 1.")
    chosen = named_or_saved(name)
    for setting in settings or []:
        chosen = with_value(chosen, setting)
    fabric = make_fabric(device, precision)
    torch.manual_seed(0)
    learner = make_learner(fabric, CKGCN.from_recipe(chosen), load(chosen.data, data_dir), chosen)
    report = {"recipe": chosen.name, **measure(learner, steps), "precision": precision}
    if as_json:
        print(json.dumps(report))
        return
    table = Table(title=f"{chosen.name} on {report['device']}", show_header=False)
    for key, value in report.items():
        table.add_row(key, f"{value:,.3f}" if isinstance(value, float) else str(value))
    Console().print(table)


def measure(learner: Learner, steps: int) -> dict[str, float | int | str]:
    """Median time of a step after two that warm up, and what follows from it."""
    device, size = learner.fabric.device, learner.recipe.batch_size
    learner.wrapped.train()
    times: list[float] = []
    while len(times) < steps + 2:
        for graphs in training_batches(learner.data.train, size, 0, 1):
            _wait(device)
            start = time.perf_counter()
            training_step(learner, graphs)
            _wait(device)
            times.append(time.perf_counter() - start)
            if len(times) == steps + 2:
                break
    step = statistics.median(times[2:])
    count = min(size, len(learner.data.train))
    return {
        "device": device_name(device),
        "step_ms": 1e3 * step,
        "graphs_per_s": count / step,
        "epoch_s": len(learner.data.train) * step / count,
        "peak_memory_mb": peak_memory_mb(device),
        "copy_gb_s": copy_speed(device),
    }


def copy_speed(device: torch.device) -> float:
    """Bytes read plus bytes written per second of a large copy, in GB/s: the ceiling of whatever moves memory."""
    source = torch.rand(COPY_BYTES // 4, device=device)
    target = torch.empty_like(source)
    times = []
    for _ in range(5):
        _wait(device)
        start = time.perf_counter()
        target.copy_(source)
        _wait(device)
        times.append(time.perf_counter() - start)
    return 2 * COPY_BYTES / min(times) / 1e9


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
