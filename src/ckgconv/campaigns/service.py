"""NVIDIA's multi-process service (MPS): kernels of several processes run on one GPU at the same time, not in turns."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

CONTROL = "nvidia-cuda-mps-control"
# A process that uses the GPU through the service.
PROBE = "import torch; torch.zeros(1, device='cuda').add(1).cpu()"
TIMEOUT = 120.0


@contextmanager
def shared_gpu(device: str, at_once: int, say: Callable[[str], None]) -> Iterator[None]:
    """Start the service where several processes share a GPU and it exists; end it where it was started here."""
    wanted = at_once > 1 and device != "cpu" and torch.cuda.is_available()
    if wanted and shutil.which(CONTROL) is None:
        say(f"{CONTROL} is not installed: runs take turns on the GPU.")
    if not wanted or shutil.which(CONTROL) is None:
        yield
        return
    started = _control("-d") == 0
    if started and not _works():
        _quit()
        say("The CUDA multi-process service does not work here and was ended again: runs take turns on the GPU.")
        started = False
    elif started:
        say("Started the CUDA multi-process service: runs share the GPU.")
    else:
        say("The CUDA multi-process service runs already, or was refused.")
    try:
        yield
    finally:
        if started:
            _quit()


def _control(*arguments: str, typed: str | None = None) -> int:
    try:
        found = subprocess.run([CONTROL, *arguments], input=typed, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return 1
    return found.returncode


def _quit() -> None:
    _control(typed="quit\n")


def _works() -> bool:
    try:
        return subprocess.run([sys.executable, "-c", PROBE], capture_output=True, timeout=TIMEOUT).returncode == 0
    except subprocess.TimeoutExpired:
        return False
