"""Several workers that share the requests, and what becomes of a slow molecule.

Molecules are computed in portions, each with a limit on its time. Where a portion takes longer, its molecules are
computed one by one, so that the slow one alone has a reason in place of a prediction. Requests take turns after each
portion.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from queue import Empty, Queue
from typing import Any

from ckgconv.serve.limits import Limits
from ckgconv.serve.worker import Opens, TooSlow, Worker

# Molecules that a worker is asked about at once.
PORTION = 32
# Slow molecules of a request, after which nothing more of it is computed.
MOST_SLOW = 3

Row = dict[str, Any]
Features = Sequence[Sequence[float | None]]  # None: unknown


class Busy(Exception):
    """No worker was free in time."""


class Pool:
    """Workers, used by any number of threads."""

    def __init__(self, opens: Opens, limits: Limits) -> None:
        self.limits = limits
        self.workers = [Worker(opens) for _ in range(limits.workers)]
        self.free: Queue[Worker] = Queue()
        self.closed = threading.Event()
        for worker in self.workers:
            self.free.put(worker)

    def ask(self, seconds: float, do: str, **rest: Any) -> Any:
        """The answer of the next free worker; raises Busy where there is none in time, else as `Worker.ask`."""
        try:
            worker = self.free.get(timeout=self.limits.request_seconds)
        except Empty:
            raise Busy from None
        try:
            if self.closed.is_set():
                raise Busy
            return worker.ask(seconds, do, **rest)
        finally:
            self.free.put(worker)

    def rows(
        self, do: str, smiles: Sequence[str], seconds: float, features: Features | None = None
    ) -> Iterator[list[Row]]:
        """Rows of the molecules in order, portion by portion, as long as there is time; `do`: "predict" or "cells".

        `features` has a row for each molecule, where the network reads own columns.
        """
        request = _Request(self, do, seconds)
        for start in range(0, len(smiles), PORTION):
            portion = slice(start, start + PORTION)
            yield request.portion(smiles[portion], None if features is None else features[portion])

    def close(self) -> None:
        """End all workers."""
        self.closed.set()
        for worker in self.workers:
            worker.end()


class _Request:
    """Molecules of one request: how much time they have, and how many were slow."""

    def __init__(self, pool: Pool, do: str, seconds: float) -> None:
        self.pool, self.do, self.seconds = pool, do, seconds
        self.deadline = time.monotonic() + seconds
        self.slow = 0

    def portion(self, smiles: Sequence[str], features: Features | None) -> list[Row]:
        most = self.pool.limits.letters
        rows: dict[int, Row] = {
            place: _without(each[:most], f"The SMILES has {len(each):,} letters: give at most {most:,}.")
            for place, each in enumerate(smiles)
            if len(each) > most
        }
        asked = [place for place in range(len(smiles)) if place not in rows]
        own = None if features is None else [features[place] for place in asked]
        found = self._together([smiles[place] for place in asked], own)
        return [row for _, row in sorted((rows | dict(zip(asked, found, strict=True))).items())]

    def _together(self, smiles: list[str], features: Features | None) -> list[Row]:
        if not smiles:
            return []
        refusal = self._refusal()
        if refusal:
            return [_without(each, refusal) for each in smiles]
        try:
            beside = {} if features is None else {"features": features}
            return list(self.pool.ask(self.pool.limits.seconds, self.do, smiles=smiles, **beside))
        except TooSlow:
            if len(smiles) > 1:
                alone = [None] * len(smiles) if features is None else [[row] for row in features]
                pairs = zip(smiles, alone, strict=True)
                return [row for each, own in pairs for row in self._together([each], own)]
            self.slow += 1
            return [_without(smiles[0], f"The molecule took longer than {self.pool.limits.seconds:g} s.")]

    def _refusal(self) -> str:
        """Why nothing more is computed; empty as long as something is."""
        if self.slow >= MOST_SLOW:
            return f"Not computed, since {MOST_SLOW} molecules of the request were slow: send it without them."
        if time.monotonic() > self.deadline:
            return f"Not computed within the {self.seconds:g} s of a request: send fewer molecules."
        return ""


def _without(smiles: str, reason: str) -> Row:
    return {"smiles": smiles, "reason": reason}
