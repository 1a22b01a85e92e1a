"""The record of a run: what was run, where, how it went; one JSON file, and the same as CSV and TensorBoard logs."""

import csv
import gc
import importlib.metadata
import importlib.util
import json
import platform
import resource
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ckgconv.files import write_text, write_whole
from ckgconv.recipe import Recipe

PACKAGES = ("ckgconv", "torch", "torch_geometric", "lightning", "torchmetrics", "numpy", "scipy")
COLUMNS = ("epoch", "train_loss", "val", "lr", "seconds")


def new_record(recipe: Recipe, seed: int, parameters: int, device: torch.device, precision: str) -> dict[str, Any]:
    """A record before the first epoch."""
    return {
        "recipe": asdict(recipe),
        "seed": seed,
        "commit": commit(),
        "versions": versions(),
        "device": device_name(device),
        "precision": precision,
        "parameters": parameters,
        "metric": recipe.training.metric,
        "epochs": [],
        "best": None,
        "wall_s": 0.0,
        "peak_memory_mb": 0,
    }


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """record.json and metrics.csv."""
    write_text(folder / "record.json", json.dumps(record, indent=1))
    write_whole(folder / "metrics.csv", lambda part: _write_csv(part, record["epochs"]))


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record in the folder of a run; None where it was not written yet or is damaged."""
    try:
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


class TensorBoard:
    """Scalars for TensorBoard under `folder`/tensorboard, where the package is installed; resumes where it stopped."""

    def __init__(self, folder: Path, first_epoch: int) -> None:
        self.writer: Any = None
        if importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_epoch)

    def add(self, epoch: dict[str, Any]) -> None:
        if self.writer is not None:
            for name in COLUMNS[1:]:
                self.writer.add_scalar(name, epoch[name], epoch["epoch"])

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def forget_memory(device: torch.device) -> None:
    """The highest memory on a GPU is counted anew, without what a run before this one left behind."""
    if device.type == "cuda":
        # A learner and its captured steps name each other: only the collector frees them.
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb(device: torch.device) -> int:
    """Highest memory so far: allocated on a GPU, resident on a CPU, there since the process began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) // 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10


def device_name(device: torch.device) -> str:
    """What a person calls it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {torch.get_num_threads()} threads)"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The commit of the source tree this package runs from, marked where it has changes; None outside a checkout."""
    folder = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=folder, capture_output=True, text=True
        )
    except OSError:
        return None
    return described.stdout.strip() or None if described.returncode == 0 else None


def _write_csv(path: Path, epochs: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(epochs)
