"""Runs that are stopped at every write and at random, on full disks and in damaged folders, and then go on.

    PYTHONPATH=src:tests python tests/faults/interruptions.py --random 200 --seed 0

Each case stops a run in a process of its own, resumes it, or starts it again where nothing had begun, and compares what
it ends with, bit for bit, with the same run left alone. A damaged folder may be refused, with a sentence.
"""

import argparse
import errno
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.child import outcome_of
from faults.points import Points, fingerprint
from small_data import small_dataset

from ckgconv import recipe, train
from ckgconv.cli.processes import ending_together
from ckgconv.engine import record, tensorboard
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.run_folder import has_run

SEED = 7


def small_recipe() -> object:
    chosen = recipe("zinc")
    model = replace(chosen.model, width=8, blocks=1, steps=3)
    return replace(chosen, model=model, training=replace(chosen.training, epochs=3, warmup_epochs=1, batch_size=3))


RECIPE = small_recipe()
DATA = small_dataset(RECIPE)


def go_on(folder: Path) -> None:
    """Train the run in a folder from where it is."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background ignores
    with ending_together():
        train(RECIPE, SEED, data=DATA, folder=folder, device="cpu", resume=has_run(folder))


def stopped_at(point: int, act: Callable[[], None]) -> Callable[[Path], None]:
    def case(folder: Path) -> None:
        Points(point, act).watch()
        go_on(folder)

    return case


def stopped_after(seconds: float, number: int) -> Callable[[Path], None]:
    def case(folder: Path) -> None:
        threading.Timer(seconds, os.kill, (os.getpid(), number)).start()
        go_on(folder)

    return case


def sends(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def fails(code: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(code, os.strerror(code))

    return act


class BackwardsClock:
    """A clock that goes back a second at each look."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        self.now -= 1.0
        return self.now


def with_a_clock_going_back(folder: Path) -> None:
    time.time = BackwardsClock()  # type: ignore[assignment]
    go_on(folder)


def damages(draw: random.Random, folder: Path) -> str:
    """Change one file of a folder: remove, cut, empty or alter it; returns what was done."""
    file = draw.choice(sorted(path for path in folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts))
    content = file.read_bytes()
    kind = draw.choice(("removed", "cut", "emptied", "altered", "linked"))
    file.unlink()
    if kind == "cut":
        file.write_bytes(content[: draw.randrange(len(content) + 1)])
    elif kind == "emptied":
        file.write_bytes(b"")
    elif kind == "altered":
        place = draw.randrange(max(len(content), 1))
        file.write_bytes(content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :])
    elif kind == "linked":
        file.symlink_to(folder.parent / "outside")
    return f"{file.relative_to(folder)} {kind}"


class Campaign:
    """Cases against one run that was left alone."""

    def __init__(self, place: Path) -> None:
        CheckpointBudget.share = math.inf
        # Neither is part of what is compared, and both take longer than an epoch.
        tensorboard.importlib.util.find_spec = lambda name: None  # type: ignore[assignment]
        record.commit = lambda: None
        self.place, self.log = place, place / "log"
        self.log.write_text("")
        self.counts: Counter[str] = Counter()
        self.bad: list[str] = []
        points = Points()
        whole = place / "whole"

        def count() -> None:
            points.watch()
            go_on(whole)
            (place / "points").write_text(str(points.passed))

        assert outcome_of(count, self.log) == "done", self.log.read_text()
        self.points = int((place / "points").read_text())
        self.wanted = fingerprint(whole)

    def interrupt(self, name: str, case: Callable[[Path], None], endings: tuple[str, ...]) -> None:
        """Stop a run by a case, go on, and compare."""
        folder = self.place / "run"
        shutil.rmtree(folder, ignore_errors=True)
        ended = outcome_of(lambda: case(folder), self.log)
        self._note(ended in endings, f"{name}: {ended}: {self._last()}")
        self.resume(name, folder, refusable=False)

    def damage(self, draw: random.Random) -> None:
        """Damage the folder of a run that was stopped after two epochs, and go on."""
        folder, outside = self.place / "run", self.place / "outside"
        shutil.rmtree(folder, ignore_errors=True)
        outside.write_text("mine")
        outcome_of(lambda: stopped_at(2 * self.points // 3, sends(signal.SIGKILL))(folder), self.log)
        name = damages(draw, folder)
        self.resume(name, folder, refusable=True)
        self._note(outside.read_text() == "mine", f"{name}: a file outside was changed")

    def resume(self, name: str, folder: Path, refusable: bool) -> None:
        self.log.write_text("")
        ended = outcome_of(lambda: go_on(folder), self.log)
        self._note(ended == "done" or (refusable and ended == "refused"), f"{name}, resumed: {ended}: {self._last()}")
        self.counts[ended] += 1
        if ended == "done":
            found = fingerprint(folder)
            other = [key for key in self.wanted if found.get(key) != self.wanted[key]]
            self._note(not other, f"{name}: other {', '.join(other)}")

    def _last(self) -> str:
        return "".join([line for line in self.log.read_text().splitlines() if line][-1:])[:200]

    def _note(self, sound: bool, line: str) -> None:
        if not sound:
            self.bad.append(line)


# What happens at a point, and how the process may end then: a full disk or a signal ends it with a sentence.
ACTS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "kill": (sends(signal.SIGKILL), ("stopped by SIGKILL",)),
    "SIGTERM": (sends(signal.SIGTERM), ("failed",)),
    "SIGINT": (sends(signal.SIGINT), ("failed",)),
    "full disk": (fails(errno.ENOSPC), ("refused",)),
    "read-only": (fails(errno.EROFS), ("refused",)),
}


def enumerated(campaign: Campaign, every: int = 1) -> Iterator[None]:
    """Every act at every point, or at some of them."""
    for place, point in enumerate(range(0, campaign.points, every)):
        for name in ACTS if every == 1 else [list(ACTS)[place % len(ACTS)]]:
            act, endings = ACTS[name]
            campaign.interrupt(f"{name} at point {point}", stopped_at(point, act), endings)
            yield


def at_random(campaign: Campaign, count: int, draw: random.Random) -> Iterator[None]:
    """Signals after random times, and damaged folders."""
    for _ in range(count):
        number, seconds = draw.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)), draw.uniform(0, 1.5)
        endings = ("done", "failed", "stopped by SIGKILL")
        campaign.interrupt(f"{number.name} after {seconds:.3f} s", stopped_after(seconds, number), endings)
        campaign.damage(draw)
        yield


def campaign(every: int, count: int, seed: int) -> list[str]:
    """Run the cases; returns a line for each that lost something."""
    with tempfile.TemporaryDirectory() as place:
        found = Campaign(Path(place))
        points = sum(1 for _ in enumerated(found, every))
        drawn = sum(1 for _ in at_random(found, count, random.Random(seed)))
        found.interrupt("a clock going back", with_a_clock_going_back, ("done",))
    print(f"{found.points} points of writing, {points} cases at them; {drawn} at random times, {drawn} damaged folders")
    print(f"after which runs were {dict(found.counts)}; {len(found.bad)} were wrong")
    return found.bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=200, help="random interruptions, and as many damaged folders")
    parser.add_argument("--every", type=int, default=1, help="every how many points of writing")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = campaign(options.every, options.random, options.seed)
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
