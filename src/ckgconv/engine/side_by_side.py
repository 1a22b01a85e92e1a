"""Runs that are trained at the same time, each in a process of its own with its share of the cores.

A small network keeps one core busy and gains little from a second one, so as many runs as there are cores take hardly
longer than one. Processes are spawned, since CUDA does not survive a fork. Each reports its epochs through a queue; the
failure of one ends the others, whose checkpoints remain.
"""

import os
import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import torch

from ckgconv.checks import InputError
from ckgconv.engine.record import Epoch
from ckgconv.engine.run import Run, train
from ckgconv.engine.run_folder import has_run
from ckgconv.engine.watcher import Silence
from ckgconv.recipe import Recipe

SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True)
class Job:
    """A run to train; `resume` applies where the folder holds one."""

    recipe: Recipe
    seed: int
    folder: Path
    device: str = "auto"
    precision: str = "32"
    data: Path | None = None
    resume: bool = False

    def train(self, watcher: Any = None) -> Run:
        """Train it here."""
        return train(
            self.recipe,
            self.seed,
            data=self.data,
            folder=self.folder,
            resume=self.resume and has_run(self.folder),
            device=self.device,
            precision=self.precision,
            watcher=watcher,
        )


@dataclass(frozen=True)
class Told:
    """What a process says of its run."""

    place: int  # of the job
    kind: Literal["epoch", "warning", "failure", "ended"]
    sentence: str = ""
    epoch: Epoch | None = None


class _Telling(Silence):
    """A watcher that tells of a job."""

    def __init__(self, place: int, tell: Callable[[Told], None]) -> None:
        self.place, self.tell = place, tell

    def epoch(self, entry: Epoch) -> None:
        self.tell(Told(self.place, "epoch", epoch=entry))

    def warn(self, sentence: str) -> None:
        self.tell(Told(self.place, "warning", sentence))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def train_side_by_side(jobs: Sequence[Job], at_once: int, tell: Callable[[Told], None]) -> None:
    """Train all jobs into their folders; `tell` hears of every epoch and warning.

    One at a time they are trained here, without a process of their own.
    """
    if at_once == 1:
        for place, job in enumerate(jobs):
            job.train(_Telling(place, tell))
        return
    context = get_context("spawn")
    told = context.Queue()
    waiting, running = list(enumerate(jobs)), dict[int, Any]()
    threads = max(1, cores() // at_once)
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                place, job = waiting.pop(0)
                process = context.Process(target=_train, args=(place, job, threads, told), daemon=True)
                process.start()
                running[place] = process
            for each in _heard(told):
                if each.kind == "failure":
                    raise InputError(each.sentence)
                if each.kind == "ended":
                    running.pop(each.place).join()
                else:
                    tell(each)
            _check_alive(running, told, jobs)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.join()
        told.close()


def _heard(told: Any) -> list[Told]:
    """What has been said, after a while at most."""
    found: list[Told] = []
    try:
        found.append(told.get(timeout=SECONDS_BETWEEN_LOOKS))
        while True:
            found.append(told.get_nowait())
    except queue.Empty:
        return found


def _check_alive(running: dict[int, Any], told: Any, jobs: Sequence[Job]) -> None:
    """Refuse to wait for a process that ended without a word."""
    for place, process in running.items():
        if not process.is_alive() and told.empty():
            raise InputError(
                f"The process that trained {jobs[place].folder} ended with exit code {process.exitcode}, perhaps for "
                f"want of memory: continue with --resume, and fewer runs at once."
            )


def _train(place: int, job: Job, threads: int, told: Any) -> None:
    """In a process of its own."""
    torch.set_num_threads(threads)
    try:
        job.train(_Telling(place, told.put))
    except InputError as error:
        told.put(Told(place, "failure", str(error)))
    else:
        told.put(Told(place, "ended"))
