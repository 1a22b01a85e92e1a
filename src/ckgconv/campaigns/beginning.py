"""What a worker says between its start and its first epoch, such as that it compiles: its log, read as it grows.

A run that compiles its kernels takes a while before anything is seen, and its own output goes to a file.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

NOTE, EPOCH = "note: ", "epoch "


@dataclass
class Beginning:
    """The part of a log that one worker adds, up to its first epoch."""

    log: Path
    place: int  # bytes of the log that were read, or written before
    start: float = field(default_factory=time.monotonic)
    over: bool = False

    def news(self) -> list[str]:
        """Sentences that came since the last call; the last of all says how long the first epoch took to come."""
        found: list[str] = []
        for line in self._lines():
            if line.startswith(NOTE):
                found.append(line.removeprefix(NOTE))
            elif line.startswith(EPOCH):
                self.over = True
                return [*found, f"first epoch after {time.monotonic() - self.start:.0f} s"]
        return found

    def _lines(self) -> list[str]:
        """Whole lines alone: a worker may be in the middle of one."""
        if self.over or not self.log.exists():  # somebody may clear logs, which hold no state
            return []
        with self.log.open("rb") as file:
            file.seek(self.place)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.place += len(whole)
        return whole.decode("utf-8", errors="replace").splitlines()
