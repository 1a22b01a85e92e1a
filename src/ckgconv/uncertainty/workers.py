"""Processes that outlive one another: where one ends, by a signal or a crash, others take its place.

The first are forked from this process, which has imported everything already; on a GPU, which does not survive that,
they are spawned. Those that follow are forked by a server that has imported this package and nothing else. A process
ends with the one that started it.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from types import TracebackType
from typing import Generic, Self, TypeVar

Given = TypeVar("Given")
Found = TypeVar("Found")
FORKS = sys.platform == "linux"
PRELOADED = "ckgconv.uncertainty.parallel"


class Ended(Exception):
    """A process ended before it had answered."""


@dataclass(frozen=True)
class Task(Generic[Given, Found]):
    """What was asked of the processes of a generation."""

    given: Given
    future: Future[Found]
    generation: int

    def result(self) -> Found:
        """The answer, once it is there; raises Ended."""
        try:
            return self.future.result()
        except (BrokenProcessPool, CancelledError) as error:
            raise Ended from error

    @property
    def lost(self) -> bool:
        """Whether its process has ended without an answer."""
        if not self.future.done():
            return False
        return self.future.cancelled() or isinstance(self.future.exception(), BrokenProcessPool)


class Workers(Generic[Given, Found]):
    """Several processes that compute a function.

    Args:
        count: how many at once.
        function: what they compute; one that can be sent to a process.
        forked: whether the first of them may be forked from this process.
    """

    def __init__(self, count: int, function: Callable[[Given], Found], forked: bool) -> None:
        self.count, self.function = count, function
        self.forked = forked and FORKS
        self.generation = 0
        self.pool = self._start(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, given: Given) -> Task[Given, Found]:
        """Ask for an answer."""
        try:
            future = self._submitted(self.pool, given)
        except BrokenProcessPool:  # it has ended since the last answer
            self._replace()
            future = self._submitted(self.pool, given)
        return Task(given, future, self.generation)

    def again(self, task: Task[Given, Found]) -> Task[Given, Found]:
        """The same task, asked again where its process has ended."""
        if not task.lost:
            return task
        if task.generation == self.generation:
            self._replace()
        return self.submit(task.given)

    def alone(self, given: Given) -> Found:
        """The answer of a process that nothing else is asked of; raises Ended."""
        pool = self._start(1)
        try:
            return self._submitted(pool, given).result()
        except BrokenProcessPool as error:
            raise Ended from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _replace(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.generation += 1
        self.pool = self._start(self.count)

    def _start(self, count: int) -> ProcessPoolExecutor:
        first, self.forked = self.forked, False
        context = get_context("fork" if first else "forkserver" if FORKS else "spawn")
        if context.get_start_method() == "forkserver":
            context.set_forkserver_preload([PRELOADED])
        return ProcessPoolExecutor(count, context, _begin)

    def _submitted(self, pool: ProcessPoolExecutor, given: Given) -> Future[Found]:
        with warnings.catch_warnings():
            # Python warns of forks beside threads; a forked process uses none of theirs, and one thread.
            warnings.simplefilter("ignore", DeprecationWarning)
            return pool.submit(self.function, given)


def _begin() -> None:
    """In a new process: Ctrl-C and what follows SIGTERM are for the one that started it, whose end is its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
