"""Runs cases in child processes with limits, and says what became of each.

    result     the library gave an answer
    refused    InputError with one sentence
    traceback, crash, hang, memory, wrong, unclear, outside     failures

A child serves many cases, and a new one replaces it where it crashed or was killed. Children are forked from a server
that has imported the library once.
"""

import contextlib
import multiprocessing
import os
import resource
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from hostile.doors import DOORS

SECONDS = 60
BYTES = 4 * 2**30
LONGEST_SENTENCE = 1000
GOOD = ("result", "refused")


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    kind: str
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.kind in GOOD


class Children:
    """One child at a time, and its successors."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("forkserver")
        tests = str(Path(__file__).parents[1])
        paths = [tests, *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))  # of the server
        self.context.set_forkserver_preload(["hostile.runner"])
        self.process: multiprocessing.process.BaseProcess | None = None
        self.connection: Connection | None = None

    def run(self, door: str, case: bytes) -> Outcome:
        """Hand a case to a door."""
        if self.connection is None:
            self._start()
        assert self.connection is not None
        self.connection.send((door, case))
        if not self.connection.poll(SECONDS):
            self.close()
            return Outcome("hang", f"no answer after {SECONDS} s")
        try:
            kind, detail = self.connection.recv()
        except EOFError:
            assert self.process is not None
            self.process.join()
            code = self.process.exitcode
            self.close()
            return Outcome("crash", f"exit code {code}")
        return Outcome(kind, detail)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
        if self.connection is not None:
            self.connection.close()
        self.process = self.connection = None

    def _start(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self.process, self.connection = process, ours


def serve(connection: Connection) -> None:
    """The life of a child: cases in, outcomes out."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    warnings.simplefilter("ignore")
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    while True:
        try:
            door, case = connection.recv()
        except EOFError:
            return
        connection.send(judged(door, case))


def judged(name: str, case: bytes) -> tuple[str, str]:
    """Kind and detail of the outcome of a case."""
    from ckgconv.checks import InputError

    with tempfile.TemporaryDirectory() as place:
        folder, around = Path(place) / "case", Path(place)
        folder.mkdir()
        try:
            with contextlib.chdir(folder):
                DOORS[name].enter(case, folder)
            outcome = ("result", "")
        except InputError as error:
            outcome = ("refused", str(error)) if is_sentence(str(error)) else ("unclear", repr(str(error))[:500])
        except MemoryError:
            outcome = ("memory", _last_frame())
        except AssertionError:
            outcome = ("wrong", _last_frame())
        except BaseException:
            outcome = ("traceback", _last_frame())
        if [path.name for path in around.iterdir()] != ["case"]:
            outcome = ("outside", str(sorted(path.name for path in around.iterdir())))
    return outcome


def is_sentence(text: str) -> bool:
    """Printable text on one line, not endless, with an end."""
    return text.isprintable() and 0 < len(text) <= LONGEST_SENTENCE and text.rstrip()[-1] in ".:!?)…'\""


def _last_frame() -> str:
    kind, error, trace = sys.exc_info()
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if "ckgconv" in frame.filename] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
    return f"{kind.__name__ if kind else '?'} at {place}: {str(error)[:200]}"
