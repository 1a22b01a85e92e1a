"""Memory of a long run: many steps of a tiny recipe, with its validations, checkpoints and records.

    python benchmarks/long_run.py [--steps 50000] [--graphs 64] [--device cpu] [--out results/reliability]

Writes long-run-DEVICE.json and .png: resident memory of the process (on a GPU also the memory reserved there) by step.
A leak of 100 bytes a step would show as 5 MB after 50,000 steps. What grows for a reason is the record, one entry per
epoch, and on a CPU oneDNN's cache of compiled primitives, one for each shape, at most 1,024:
ONEDNN_PRIMITIVE_CACHE_CAPACITY=0 runs without it.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from ckgconv import recipe, train
from ckgconv.engine.machine import commit
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value

BATCH = 8
SETTINGS = (
    *("model.width=8", "model.blocks=1", "model.steps=4", "training.warmup_epochs=0"),
    *(f"training.batch_size={BATCH}", "training.learning_rate=1e-5"),
)
POINTS = 500


class Memory:
    """A callback that notes the memory in use, a few hundred times during a run."""

    def __init__(self, epochs: int, steps_per_epoch: int) -> None:
        self.every, self.steps_per_epoch = max(1, epochs // POINTS), steps_per_epoch
        self.points: list[dict[str, float]] = []

    def on_epoch(self, run: object, epoch: object) -> None:
        number = epoch.epoch + 1  # type: ignore[attr-defined]
        if number % self.every == 0:
            reserved = torch.cuda.memory_reserved() if torch.cuda.is_available() else 0
            self.points.append(
                {"step": number * self.steps_per_epoch, "resident_mb": resident_mb(), "gpu_mb": reserved / 2**20}
            )


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def tiny(steps: int, graphs: int) -> Recipe:
    chosen = recipe("zinc-demo")
    for setting in (*SETTINGS, f"data.limit={graphs}", f"training.epochs={steps * BATCH // graphs}"):
        chosen = with_value(chosen, setting)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--graphs", type=int, default=64, help="per epoch, a multiple of 8")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results/reliability"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen, start = tiny(options.steps, options.graphs), time.perf_counter()
    memory = Memory(chosen.training.epochs, options.graphs // BATCH)
    with tempfile.TemporaryDirectory() as folder:
        run = train(chosen, device=options.device, folder=Path(folder) / "run", callbacks=[memory])
    steps = np.array([point["step"] for point in memory.points])
    resident = np.array([point["resident_mb"] for point in memory.points])
    late = steps > steps[-1] / 2  # the first half fills caches
    slope = float(np.polyfit(steps[late], resident[late], 1)[0])
    report = {
        "command": f"python benchmarks/long_run.py --steps {options.steps} --graphs {options.graphs} "
        f"--device {options.device}",
        "commit": commit(),
        "device": run.record.device,
        "steps": int(steps[-1]),
        "epochs": len(run.record.epochs),
        "seconds": round(time.perf_counter() - start),
        "resident_mb": {"first": resident[0], "middle": float(resident[late][0]), "last": resident[-1]},
        "gpu_mb": {"first": memory.points[0]["gpu_mb"], "last": memory.points[-1]["gpu_mb"]},
        "bytes_per_step_in_the_second_half": round(slope * 2**20, 1),
        "points": memory.points,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / f"long-run-{options.device}"
    stem.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    draw(stem.with_suffix(".png"), memory.points, report["bytes_per_step_in_the_second_half"])
    print(json.dumps({key: value for key, value in report.items() if key != "points"}, indent=1))


def draw(path: Path, points: list[dict[str, float]], growth: float) -> None:
    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    steps = [point["step"] for point in points]
    for name, label in (("resident_mb", "of the process"), ("gpu_mb", "reserved on the GPU")):
        if any(point[name] for point in points):
            axes.plot(steps, [point[name] for point in points], label=label)
    axes.legend(frameon=False)
    axes.set(
        xlabel="training steps",
        ylabel="memory, MB",
        title=f"The process grows by {growth:,.0f} bytes per step in the second half",
    )
    axes.set_ylim(0, 1.15 * max(max(point["resident_mb"], point["gpu_mb"]) for point in points))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
