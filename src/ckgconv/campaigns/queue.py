"""The queue of a campaign: several workers at once, each training one run, until all are done or the time is up.

However this process ends, its workers end with it, and their runs go on from their newest checkpoints. A run that
fails keeps its sentence and the others go on; one that an error of the GPU ended is begun again, since a process that
was killed takes all others down that share the GPU with it.
"""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from ckgconv.campaigns.beginning import Beginning
from ckgconv.campaigns.folder import CampaignFolder
from ckgconv.campaigns.plan import PlannedRun
from ckgconv.campaigns.progress import FAILED, Progress, progress_of
from ckgconv.campaigns.service import shared_gpu
from ckgconv.campaigns.worker import GPU_FAILED, PATIENCE, Task
from ckgconv.checks import InputError, cut, require
from ckgconv.data import CATALOGUE, data_folder, find, load
from ckgconv.engine.lock import Lock
from ckgconv.registry import nearest

POLL_SECONDS = 0.1
# Seconds from the start of a worker to its first epoch, about: imports, data, compilation.
START_SECONDS = 30.0
# How often a run is begun again in a piece after errors of the GPU.
ATTEMPTS = 2
Say = Callable[[str], None]


@dataclass(frozen=True)
class QueueSettings:
    """How to train; none of it changes what is trained."""

    at_once: int = 1
    seconds: float | None = None  # of this piece; None: until everything is done
    device: str = "auto"
    data_dir: Path | None = None
    retry: bool = False  # failed runs too
    only: tuple[str, ...] = ()  # patterns of run names; none: every run


@dataclass
class Queue:
    """Runs that wait, and the processes of those that are being trained."""

    folder: CampaignFolder
    settings: QueueSettings
    lock: Lock
    say: Say
    waiting: list[PlannedRun]
    until: float | None
    running: dict[str, tuple[PlannedRun, subprocess.Popen[bytes]]] = field(default_factory=dict)
    beginnings: dict[str, Beginning] = field(default_factory=dict)  # by name, of running ones
    starts: int = 0  # in this piece
    attempts: Counter[str] = field(default_factory=Counter)  # by name, of runs that were begun again

    def work(self) -> None:
        """Until nothing is left or the time is up."""
        self._start()
        while self.running:
            time.sleep(POLL_SECONDS)
            for name, (planned, process) in list(self.running.items()):
                ended = process.poll() is not None
                for sentence in self.beginnings[name].news():
                    self.say(f"{name}: {sentence}")
                if ended:
                    del self.running[name]
                    self._settle(planned, process)
            self._start()

    def _start(self) -> None:
        while self.waiting and len(self.running) < self.settings.at_once and self._fits(self.waiting[0]):
            planned = self.waiting.pop(0)
            self.running[planned.name] = planned, self._process(planned)
            self.starts += 1
            self.lock.write(list(self.running))
            self.say(f"{planned.name}: started")

    def _fits(self, next_run: PlannedRun) -> bool:
        """Whether a run is expected to end an epoch in time; the first runs of a piece are always started."""
        if self.until is None or self.starts < self.settings.at_once:
            return True
        found = next(each for each in progress_of(self.folder) if each.planned == next_run)
        return time.time() + START_SECONDS + (found.epoch_seconds or 0.0) < self.until

    def _process(self, planned: PlannedRun) -> subprocess.Popen[bytes]:
        settings = self.settings
        on_cpu = settings.device == "cpu" or not torch.cuda.is_available()
        task = Task(
            folder=str(self.folder.path),
            name=planned.name,
            device=settings.device,
            at_once=settings.at_once,
            threads=max(1, torch.get_num_threads() // settings.at_once) if on_cpu else None,
            until=self.until,
            data_dir=None if settings.data_dir is None else str(settings.data_dir),
        )
        log = self.folder.log(planned)
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as file:
            self.beginnings[planned.name] = Beginning(log, file.tell())
            return subprocess.Popen(
                task.command,
                stdin=subprocess.PIPE,  # its end tells the worker to end
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that Ctrl-C reaches this process alone
                pass_fds=(self.lock.file.fileno(),),  # the folder stays locked while a worker lives
            )

    def _settle(self, planned: PlannedRun, process: subprocess.Popen[bytes]) -> None:
        self.lock.write(list(self.running))
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode == 0:
            record = self.folder.record(planned)
            epochs = 0 if record is None else len(record.epochs)
            ended = record is not None and record.ended
            self.say(f"{planned.name}: {'done' if ended else f'stopped after epoch {epochs}'}")
            return
        sentence = _sentence(self.folder.log(planned), process.returncode)
        if process.returncode == GPU_FAILED and self.attempts[planned.name] < ATTEMPTS:
            self.attempts[planned.name] += 1
            self.waiting.insert(0, planned)
            self.say(f"{planned.name}: will go on from its checkpoint: {sentence}")
            return
        self.folder.write_failures(self.folder.failures() | {planned.name: sentence})
        self.say(f"{planned.name}: failed: {sentence}")

    def end(self) -> None:
        """End all workers."""
        for _, process in self.running.values():
            if process.stdin is not None:
                process.stdin.close()
        until = time.monotonic() + PATIENCE
        for _, process in self.running.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.running.clear()


def train_all(folder: CampaignFolder, settings: QueueSettings, lock: Lock, say: Say) -> list[Progress]:
    """Train what is left of a campaign; returns how far all runs are then."""
    until = None if settings.seconds is None else time.time() + settings.seconds
    if settings.retry and folder.failures():
        folder.write_failures({})
    left = [each for each in _chosen(progress_of(folder), settings.only) if each.to_train]
    _fetch_data(left, settings, say)
    queue = Queue(folder, settings, lock, say, [each.planned for each in left], until)
    with _ending_on_terminate(), shared_gpu(settings.device if left else "cpu", settings.at_once, say):
        try:
            queue.work()
        finally:
            queue.end()
            lock.write()
    return progress_of(folder)


def _chosen(found: list[Progress], only: tuple[str, ...]) -> list[Progress]:
    """The runs whose names match one of the patterns; all of them without any."""
    names = [each.planned.name for each in found]
    for pattern in only:
        require(
            any(fnmatchcase(name, pattern) for name in names),
            f"--only {cut(pattern)} matches no run: {nearest(pattern, names)} '*' stands for any text, as in 'zinc-*'.",
        )
    return [each for each in found if not only or any(fnmatchcase(each.planned.name, pattern) for pattern in only)]


def all_failed(found: list[Progress]) -> bool:
    """Whether nothing is left to train and some runs have failed."""
    return any(each.state == FAILED for each in found) and not any(each.to_train for each in found)


def _fetch_data(left: list[Progress], settings: QueueSettings, say: Say) -> None:
    """Download and pack what is missing once, not by several workers at a time."""
    sets = {each.planned.resolved().data for each in left}
    for data in {each.name: each for each in sets if each.name in CATALOGUE}.values():
        entry = CATALOGUE[data.name]
        if entry.file is None or entry.seed is not None or find(data.name, data_folder(settings.data_dir)) is not None:
            continue
        say(f"{data.name}: fetching the data set")
        with suppress(InputError):  # the workers say so, each for its run
            load(data, settings.data_dir)


def _sentence(log: Path, code: int) -> str:
    """Why a worker failed: the sentence of an error, else the last line that it printed."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else "it printed nothing"
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}."
    return last.removeprefix("Error: ")


@contextmanager
def _ending_on_terminate() -> Iterator[None]:
    """SIGTERM ends this process as an exception does, so that its workers are ended first."""

    def end(number: int, frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
