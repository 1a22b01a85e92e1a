"""One command in several processes, as torchrun or SLURM start them.

The first process prints and writes; a mistake is told once; and where a process is lost, the others end with a sentence
instead of a traceback.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch.distributed as dist

from ckgconv.checks import InputError

LOST = (
    "Error: another process of this run has ended, so this one ends too: its own message says why. Continue training "
    "with --resume."
)
STOPPED = "Error: this process was told to stop, as torchrun does when another one has ended."
# torchrun names here the file from which it takes the message of a process that failed.
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
# The exit code of a program that SIGTERM ended.
TERMINATED = 128 + signal.SIGTERM


def count() -> int:
    """How many processes run this command."""
    return int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1")))


def is_first() -> bool:
    """Whether this process is the one that prints and writes."""
    return int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0"))) == 0


def tell(error: InputError) -> None:
    """Print a mistake once: torchrun repeats what the others write to its file."""
    file = os.environ.get(ERROR_FILE)
    if file is not None:
        shown = {"py_callstack": f"Error: {error}", "timestamp": str(int(time.time()))}
        Path(file).write_text(json.dumps({"message": {"message": str(error), "extraInfo": shown}}))
    if file is None or is_first():
        print(f"Error: {error}", file=sys.stderr)


@contextmanager
def ending_together() -> Iterator[None]:
    """End with a sentence where another process is lost."""
    if count() == 1:
        yield
        return
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    except RuntimeError as error:
        if not _lost_connection(error):
            raise
        print(LOST, file=sys.stderr)
        sys.exit(1)
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: object) -> None:
    print(STOPPED, file=sys.stderr)
    sys.exit(TERMINATED)


def _lost_connection(error: RuntimeError) -> bool:
    """Whether a collective operation failed for want of a process; gloo has no class of error of its own."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)
