"""One process at a time in the folder of a run or of a campaign.

A file there, `lock` of a campaign and `.lock` of a run, names that process and is locked by the operating system for as
long as it or one of its workers lives. A file that a killed process left behind is therefore not locked, on this
machine or any other.
"""

import fcntl
import json
import os
import platform
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ckgconv.checks import InputError

# Seconds that the workers of a killed process have to end.
PATIENCE = 10.0
# The file in the folder of a run; in that of a campaign it is not hidden.
OF_RUN, OF_CAMPAIGN = ".lock", "lock"
# Characters of it that are read.
MOST_CHARACTERS = 2**16


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
        text = json.dumps({"pid": self.holder.pid, "host": self.holder.host, "running": list(running)})
        with suppress(OSError):  # on a full disk it has no name, and is held all the same
            self.file.truncate(0)
            os.pwrite(self.file.fileno(), text.encode(), 0)


@contextmanager
def locked(folder: Path, name: str = OF_CAMPAIGN) -> Iterator[Lock]:
    """Lock a folder by the file of that name; refused while another process is at work there."""
    with _taken(folder, name) as file:
        lock = Lock(file)
        lock.write()
        try:
            yield lock
        finally:
            file.truncate(0)


@contextmanager
def locked_run(folder: Path) -> Iterator[None]:
    """Create and lock the folder of a run; afterwards the lock file is deleted, and the folder if it is empty."""
    with locked(folder, OF_RUN):
        try:
            yield
        finally:
            with suppress(OSError):
                (folder / OF_RUN).unlink(missing_ok=True)
                folder.rmdir()


def holder_of(folder: Path) -> Holder | None:
    """The process at work in a folder; None where there is none, whatever its file says."""
    with suppress(OSError), (folder / OF_CAMPAIGN).open(encoding="utf-8") as file:
        return None if _try(file, fcntl.LOCK_SH) else _named(file)
    return None


def _taken(folder: Path, name: str) -> IO[str]:
    """The file, locked; another one where a process that ended meanwhile has removed it."""
    while True:
        file = _opened(folder, name)
        try:
            _take(file, folder)
        except InputError:
            file.close()
            raise
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _opened(folder: Path, name: str) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Never through a link: the file is emptied.
        number = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): choose another --out.") from error
    found = os.fstat(number)
    # Nor by another name of the file. One that was removed meanwhile has none.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(number)
        raise InputError(f"{folder / name} is no plain file of its own: remove it.")
    return os.fdopen(number, "r+", encoding="utf-8")


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
        values: dict[str, Any] = json.loads(file.read(MOST_CHARACTERS))
        return Holder(int(values["pid"]), str(values["host"]), tuple(values["running"]))
    except (ValueError, KeyError, TypeError, RecursionError):  # being written at this moment
        return Holder()


def _alive(holder: Holder) -> bool:
    """Whether the process exists; one of another machine is taken to, since its lock is held."""
    if holder.host not in (platform.node(), Holder.host):
        return True
    if holder.pid == 0:
        return False
    try:
        os.kill(holder.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
