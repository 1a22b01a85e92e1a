"""Molecules predicted a chunk at a time, by this process or by several at once, in their order.

Each process opens the networks itself and uses one thread: a small network keeps one core busy, so that two processes
predict nearly twice as many molecules per second. Only so many chunks are under way that memory stays the same however
long the input is. Processes are spawned.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context

import torch

from ckgconv.checks import InputError, check_whole
from ckgconv.uncertainty.predicted import Cells, PredictedMolecules
from ckgconv.uncertainty.predictor import LEVEL, Features, Predictor

# Molecules that a process predicts at a time.
CHUNK = 512
# Chunks under way for each process.
AHEAD = 3
MOST_WORKERS = 1024


@dataclass(frozen=True)
class Opening:
    """What a process opens."""

    folders: tuple[str, ...]
    device: str = "auto"
    level: float = LEVEL
    embed: bool = False  # with the features that the head reads

    def open(self) -> Predictor:
        return Predictor.open(*self.folders, device=self.device, level=self.level)


@dataclass(frozen=True)
class Rows:
    """Rows to predict, of which those with a reason hold no molecule."""

    smiles: Sequence[str]
    reasons: Sequence[str]
    features: Features | None = None  # as `Predictor.predict` takes them

    def part(self, start: int, end: int) -> "Rows":
        """Some of them."""
        features = None if self.features is None else self.features[start:end]
        return Rows(self.smiles[start:end], self.reasons[start:end], features)


def predict_chunk(predictor: Predictor, embed: bool, rows: Rows) -> Cells:
    """Columns for some rows; what fails is told in its row."""
    given = ["" if reason else text for text, reason in zip(rows.smiles, rows.reasons, strict=True)]
    found = _columns(predictor, embed, replace(rows, smiles=given))
    found["reason"] = [first or second for first, second in zip(rows.reasons, found["reason"], strict=True)]
    return found


def _columns(predictor: Predictor, embed: bool, rows: Rows) -> Cells:
    try:
        return _predicted(predictor, embed, rows).columns()
    except (InputError, RuntimeError, MemoryError) as error:
        count = len(rows.smiles)
        if count > 1:  # by halves, until the molecule is found that cannot be predicted
            half = count // 2
            first, second = (_columns(predictor, embed, part) for part in (rows.part(0, half), rows.part(half, count)))
            return {name: first[name] + second[name] for name in first}
        nothing = _predicted(predictor, embed, replace(rows, smiles=[""])).columns()
        return nothing | {"reason": [f"It could not be predicted: {error}"]}


def _predicted(predictor: Predictor, embed: bool, rows: Rows) -> PredictedMolecules:
    if embed:
        return predictor.embedded(rows.smiles, rows.features)
    return predictor.predict(rows.smiles, features=rows.features)


_opened: tuple[Predictor, bool] | None = None


def _open_here(opening: Opening) -> None:
    """In a process of its own."""
    global _opened
    torch.set_num_threads(1)
    _opened = opening.open(), opening.embed


def _predict_here(rows: Rows) -> Cells:
    assert _opened is not None
    return predict_chunk(*_opened, rows)


def predict_chunks(opening: Opening, predictor: Predictor, chunks: Iterator[Rows], workers: int) -> Iterator[Cells]:
    """Columns of each chunk of rows, in order; one worker is this process, with `predictor`."""
    check_whole("The number of workers", workers, 1, MOST_WORKERS)
    if workers == 1:
        for rows in chunks:
            yield predict_chunk(predictor, opening.embed, rows)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _open_here, (opening,)) as pool:
        waiting: deque[Future[Cells]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(_predict_here, chunk))
                if len(waiting) >= AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise InputError(
                "A process that predicted ended without a word, perhaps for want of memory: give fewer --workers."
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
