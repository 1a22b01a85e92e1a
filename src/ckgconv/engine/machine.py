"""What a run is computed with: device, memory, commit of the source, versions of packages."""

import gc
import importlib.metadata
import platform
import resource
import subprocess
from pathlib import Path

import torch

PACKAGES = ("ckgconv", "torch", "torch_geometric", "lightning", "torchmetrics", "numpy", "scipy")


def reset_peak_memory(device: torch.device) -> None:
    """Start measuring the peak memory of a GPU, without what an earlier run left behind."""
    if device.type == "cuda":
        # A learner and its captured steps refer to each other: only the garbage collector frees them.
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb(device: torch.device) -> int:
    """Peak memory: allocated on a GPU since `reset_peak_memory`; on a CPU, resident since the process began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) // 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10


def device_name(device: torch.device) -> str:
    """The product name of a GPU; architecture and number of threads of a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {torch.get_num_threads()} threads)"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages on which results depend."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The commit of the source tree this package runs from, marked "-dirty" if changed; None outside a checkout.

    An installed package may lie inside a checkout of another project, which does not track it.
    """
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=12")


def _git(*words: str) -> str | None:
    """What git prints in the folder of this file; None where it fails or is not installed."""
    folder = Path(__file__).parent
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)  # nosec B607
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
