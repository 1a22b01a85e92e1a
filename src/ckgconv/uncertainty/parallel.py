"""Molecules predicted a chunk at a time, in their order, by one process or several.

On a CPU these are processes of their own (`workers`), one too, so that a molecule that ends its process ends neither
the others nor the command. Each uses one thread: a small network keeps one core busy, and two processes predict nearly
twice as many molecules per second. On a GPU one worker is this process, and under torchrun each of its processes is:
another one would wait for its peers. Only so many chunks are under way that memory stays the same however long the
input is.

The rows of a process that has ended, killed or not, are predicted again. Where that happens once more, the first rows
that are waited for are predicted alone, by halves, until the row is found that no process survives.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from ckgconv.checks import InputError, check_whole
from ckgconv.engine.setup import process_count
from ckgconv.uncertainty.predicted import Cells, PredictedMolecules
from ckgconv.uncertainty.predictor import LEVEL, Features, Predictor
from ckgconv.uncertainty.workers import Ended, Task, Workers

# Molecules that a process predicts at a time.
CHUNK = 512
# Chunks under way for each process.
AHEAD = 3
MOST_WORKERS = 1024
# How often rows are given to processes that end.
TRIES = 2
KILLED = "The process that predicted it ended without a word, perhaps for want of memory."


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


def predict_chunks(opening: Opening, predictor: Predictor, chunks: Iterator[Rows], workers: int) -> Iterator[Cells]:
    """Columns of each chunk of rows, in order; `predictor` is what is opened here."""
    check_whole("The number of workers", workers, 1, MOST_WORKERS)
    on_cpu = predictor.run.learner.fabric.device.type == "cpu"
    if process_count() > 1 or (workers == 1 and not on_cpu):
        for rows in chunks:
            yield predict_chunk(predictor, opening.embed, rows)
        return
    task = partial(_predict_here, opening)
    with Workers(workers, task, forked=on_cpu) as crew:
        waiting: deque[Waiting] = deque()
        for rows in chunks:
            waiting.append(Waiting(rows, crew.submit(rows)))
            if len(waiting) >= AHEAD * workers:
                yield _first(crew, waiting, predictor, opening)
        while waiting:
            yield _first(crew, waiting, predictor, opening)


@dataclass
class Waiting:
    """Rows, and the task that predicts them."""

    rows: Rows
    task: Task[Rows, Cells]


def _first(crew: Workers[Rows, Cells], waiting: deque[Waiting], predictor: Predictor, opening: Opening) -> Cells:
    """The columns of the first rows that wait; they wait no longer."""
    for last in (*[False] * (TRIES - 1), True):
        try:
            found = waiting[0].task.result()
        except Ended:
            for each in () if last else waiting:
                each.task = crew.again(each.task)
        else:
            waiting.popleft()
            return found
    return _alone(crew, waiting.popleft().rows, predictor, opening)


def _alone(crew: Workers[Rows, Cells], rows: Rows, predictor: Predictor, opening: Opening) -> Cells:
    """Rows that are predicted while nothing else is, by halves where their process ends."""
    count = len(rows.smiles)
    for _ in range(1 if count > 1 else TRIES):
        try:
            return crew.alone(rows)
        except Ended:
            continue
    if count > 1:
        half = count // 2
        parts = (rows.part(0, half), rows.part(half, count))
        first, second = (_alone(crew, part, predictor, opening) for part in parts)
        return {name: first[name] + second[name] for name in first}
    nothing = _predicted(predictor, opening.embed, replace(rows, smiles=[""])).columns()
    return nothing | {"reason": [KILLED]}


_opened: Predictor | None = None


def _predict_here(opening: Opening, rows: Rows) -> Cells:
    """In a process of its own, which opens the networks for its first rows."""
    global _opened
    if _opened is None:
        torch.set_num_threads(1)
        _opened = opening.open()
    return predict_chunk(_opened, opening.embed, rows)
