"""Where the time of a training step goes: milliseconds of a step, and microseconds of each kind of launch in it.

    python benchmarks/profile_step.py pattern [zinc …] --precision bf16 [--set model.encoding=rrwp_cycles]
        [--limit 512] [--rows 25] [--trace trace.json]

The step is timed without the profiler, in the median of three epochs of the first graphs; on a GPU concurrent launches
add up to more than the step. A trace has every launch of an epoch with its time and stream, for chrome://tracing.
"""

import argparse
import json
import statistics
import time
from functools import reduce
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from ckgconv import recipe
from ckgconv.data import load
from ckgconv.engine.epoch import train_epoch
from ckgconv.engine.learner import Learner
from ckgconv.engine.machine import commit, device_name, peak_memory_mb, reset_peak_memory
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.nn.models import build_model
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value

EPOCHS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", metavar="recipe")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--precision", default="32", help="32, tf32, bf16 or 64")
    parser.add_argument("--limit", type=int, default=512, help="graphs")
    parser.add_argument("--rows", type=int, default=25, help="kinds of launches to print; 0: no profiler")
    parser.add_argument("--trace", type=Path, help="file for the launches of the profiled epoch")
    parser.add_argument("--set", nargs="+", default=[], help="as of `ckgconv train`, for all recipes")
    options = parser.parse_args()
    if options.trace and (len(options.recipes) > 1 or not options.rows):
        parser.error("--trace holds the launches of one recipe: give one, and --rows of at least 1.")
    for name in options.recipes:
        chosen = reduce(with_value, [*options.set, f"data.limit={options.limit}"], recipe(name))
        profiled(chosen, options)


def profiled(chosen: Recipe, options: argparse.Namespace) -> None:
    """Print the time of a step and of its launches."""
    torch.manual_seed(0)
    fabric = make_fabric(options.device, options.precision)
    reset_peak_memory(fabric.device)
    learner = make_learner(fabric, build_model(chosen.model), load(chosen.data, None), chosen)
    steps = -(-len(learner.data.train) // learner.recipe.batch_size)
    about = {"recipe": chosen.name, "set": options.set, "precision": options.precision}
    print(json.dumps(timed(learner, steps) | about, indent=1))
    if options.rows:
        for microseconds, calls, name in launches(learner, steps, options.trace)[: options.rows]:
            print(f"{microseconds:10.1f} µs a step {calls:7.1f} launches  {name[:100]}")


def timed(learner: Learner, steps: int) -> dict[str, float | int | str | None]:
    """Milliseconds of a step in the median of `EPOCHS` epochs, after one that compiles and captures.

    The median: an epoch whose largest batch exceeds the capacity captures again, which takes up to 16 s.
    """
    epoch(learner, 0)
    seconds = []
    for number in range(1, EPOCHS + 1):
        start = time.perf_counter()
        epoch(learner, number)
        seconds.append(time.perf_counter() - start)
    milliseconds = 1e3 * statistics.median(seconds) / steps
    device = learner.fabric.device
    return {
        "step_ms": round(milliseconds, 3),
        "steps": steps,
        "peak_memory_mb": peak_memory_mb(device),
        "device": device_name(device),
        "commit": commit(),
    }


def launches(learner: Learner, steps: int, file: Path | None) -> list[tuple[float, float, str]]:
    """Microseconds and number of each kind of launch in a step, longest first."""
    on_gpu = learner.fabric.device.type == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as trace:
        epoch(learner, EPOCHS + 1)
    if file is not None:
        trace.export_chrome_trace(str(file))
    found = [
        ((each.self_device_time_total if on_gpu else each.self_cpu_time_total) / steps, each.count / steps, each.key)
        for each in trace.key_averages()
    ]
    return sorted(found, reverse=True)


def epoch(learner: Learner, number: int) -> None:
    train_epoch(learner, number, lambda graphs, loss: None)
    if learner.fabric.device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
