"""One process at a time in the folder of a campaign.

The file `lock` names that process and is locked by the operating system for as long as it or one of its workers lives.
A file that a killed process left behind is therefore not locked, on this machine or any other.
"""

import fcntl
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ckgconv.checks import InputError

# Seconds that the workers of a killed process have to end.
PATIENCE = 10.0


@dataclass(frozen=True)
class Holder:
    """The process at work, and the names of the runs it trains."""

    pid: int = 0
    host: str = "unknown"
    running: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass
class Lock:
    """A lock that is held; workers inherit its file."""

    file: IO[str]
    holder: Holder = field(default_factory=lambda: Holder(os.getpid(), platform.node()))

    def write(self, running: Sequence[str] = ()) -> None:
        """Name this process and what it trains."""
        self.file.seek(0)
        self.file.truncate()
        self.file.write(json.dumps({"pid": self.holder.pid, "host": self.holder.host, "running": list(running)}))
        self.file.flush()


@contextmanager
def locked(folder: Path) -> Iterator[Lock]:
    """Lock a folder; refused while another process is at work there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): choose another --out.") from error
    with file:
        _take(file, folder)
        lock = Lock(file)
        lock.write()
        try:
            yield lock
        finally:
            file.seek(0)
            file.truncate()


def holder_of(folder: Path) -> Holder | None:
    """The process at work in a folder; None where there is none, whatever its file says."""
    with suppress(OSError), (folder / "lock").open(encoding="utf-8") as file:
        return None if _try(file, fcntl.LOCK_SH) else _named(file)
    return None


def _take(file: IO[str], folder: Path) -> None:
    until = time.monotonic() + PATIENCE
    try:
        while not _try(file, fcntl.LOCK_EX):
            holder = _named(file)
            if _alive(holder) or time.monotonic() > until:
                raise InputError(f"{folder} is being trained by {holder}: wait for it, or stop it first.")
            time.sleep(0.05)
    except OSError as error:
        raise InputError(f"{folder} cannot be locked ({error.strerror}): choose an --out on another disk.") from error


def _try(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _named(file: IO[str]) -> Holder:
    file.seek(0)
    try:
        values: dict[str, Any] = json.loads(file.read())
        return Holder(int(values["pid"]), str(values["host"]), tuple(values["running"]))
    except (ValueError, KeyError, TypeError):  # being written at this moment
        return Holder()


def _alive(holder: Holder) -> bool:
    """Whether the process exists; one of another machine is taken to, since its lock is held."""
    if holder.host not in (platform.node(), Holder.host):
        return True
    if holder.pid == 0:
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
