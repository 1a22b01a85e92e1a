"""Points at which a run can be stopped: before and after every step of writing a file.

_new_part     a temporary file is created, then locked
fsync         it is filled
replace       it takes its name
"""

import os
from collections.abc import Callable
from pathlib import Path

from ckgconv import files


class Points:
    """Counts the points that a process passes, and calls `act` at one of them."""

    def __init__(self, stop_at: int | None = None, act: Callable[[], None] = lambda: None) -> None:
        self.stop_at, self.act = stop_at, act
        self.passed = 0

    def watch(self) -> None:
        """Replace what `ckgconv.files` calls, in this process."""

        class Watched:
            """The module `os`, as `files` sees it."""

            def __getattr__(inner, name: str) -> object:
                return getattr(os, name)

            fsync = staticmethod(self._around(os.fsync))
            replace = staticmethod(self._around(os.replace))

        files.os = Watched()  # type: ignore[assignment]
        files._new_part = self._around(files._new_part)

    def _around(self, function: Callable[..., object]) -> Callable[..., object]:
        def watched(*arguments: object) -> object:
            self._pass()
            result = function(*arguments)
            self._pass()
            return result

        return watched

    def _pass(self) -> None:
        if self.passed == self.stop_at:
            self.act()
        self.passed += 1


def fingerprint(folder: Path) -> dict[str, object]:
    """What of a finished run must not depend on how often it was stopped."""
    from ckgconv.engine import checkpoint
    from ckgconv.engine.record import load_record

    record = load_record(folder)
    newest = checkpoint.stems(folder / "checkpoints")[0]
    return {
        "best": record.best,
        "epochs": [(each.epoch, each.train_loss, each.val, each.lr) for each in record.epochs],
        "seed": record.seed,
        "weights": files.digest((folder / "best.safetensors").read_bytes()),
        newest.name: files.digest(newest.with_suffix(".safetensors").read_bytes()),
        "left": sorted(path.name for path in folder.rglob(".*")),
    }
