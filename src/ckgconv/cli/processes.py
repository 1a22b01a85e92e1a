"""One command in several processes, as torchrun or SLURM start them.

The first process prints and writes. A mistake is reported once. If a process is lost, the others end with a sentence
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
from ckgconv.cli.terminal import plain
from ckgconv.engine.setup import process_count, process_rank

LOST = (
    "Error: another process of this run has ended, so this one ends too: its own message says why. Continue training "
    "with --resume."
)
STOPPED = "Error: this process was told to stop, as torchrun does when another one has ended."
GOES_ON = "a training goes on with --resume, a campaign by the same command; anything else begins anew."
STOPPED_ALONE = f"Stopped by SIGTERM: {GOES_ON}"
# Names the file in which torchrun looks for the message of a failed process.
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
# The usual exit code after SIGTERM.
TERMINATED = 128 + signal.SIGTERM


def is_first() -> bool:
    """Whether this process is the one that prints and writes."""
    return process_rank() == 0


def tell(error: InputError) -> None:
    """Print a mistake once: torchrun repeats what the others write to its file."""
    file = os.environ.get(ERROR_FILE)
    if file is not None:
        shown = {"py_callstack": plain(f"Error: {error}"), "timestamp": str(int(time.time()))}
        Path(file).write_text(json.dumps({"message": {"message": plain(str(error)), "extraInfo": shown}}))
    if file is None or is_first():
        print(plain(f"Error: {error}"), file=sys.stderr)


@contextmanager
def ending_together() -> Iterator[None]:
    """End with a sentence where another process is lost, and as an exception does where this one is told to stop."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    except RuntimeError as error:
        if process_count() == 1 or not _lost_connection(error):
            raise
        print(LOST, file=sys.stderr)
        sys.exit(1)
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: object) -> None:
    print(STOPPED if process_count() > 1 else STOPPED_ALONE, file=sys.stderr)
    sys.exit(TERMINATED)


def _lost_connection(error: RuntimeError) -> bool:
    """Whether a collective operation failed because a process is gone; gloo has no error class of its own."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)
