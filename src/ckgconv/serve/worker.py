"""A process that computes, asked over a pipe in JSON. One that takes too long is ended, and another one is started.

The processes are forked by a server that has imported this file, and with it torch, so that a new one needs no more
than to open the networks.

    {"do": "predict", "smiles": […]}    →    {"answer": […]}
                                             {"refused": "a sentence about the request"}
                                             {"failed": "the name of an error"}
"""

import json
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from ckgconv.checks import InputError
from ckgconv.files import valid_json
from ckgconv.serve.network import Network

# Opens what a worker computes with: each name is something that can be asked, and takes the rest of the request.
Opens = Callable[[], dict[str, Callable[..., Any]]]
READY = b"ready"
# Seconds until a new process has opened its networks; those of a GPU may take long.
OPENING = 120.0
MOST_BYTES = 2**26


class TooSlow(Exception):
    """A worker did not answer in time, or ended."""


class Failed(Exception):
    """A worker answered with an error of its own; its traceback is on the terminal."""


def open_network(folders: tuple[str, ...], device: str, atoms: int, threads: int) -> dict[str, Callable[..., Any]]:
    """What can be asked about runs."""
    torch.set_num_threads(threads)
    network = Network(folders, device, atoms)
    return {"predict": network.predict, "cells": network.cells, "explain": network.explain}


def work(connection: Connection, opens: Opens) -> None:
    """Answer until the other side is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the server ends this one
    answers = opens()
    with suppress(EOFError, OSError):
        connection.send_bytes(READY)
        while True:
            request = json.loads(connection.recv_bytes(MOST_BYTES))
            connection.send_bytes(valid_json(_answer(answers, **request)).encode())


def _answer(answers: dict[str, Callable[..., Any]], do: str, **rest: Any) -> dict[str, Any]:
    try:
        return {"answer": answers[do](**rest)}
    except InputError as error:
        return {"refused": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"failed": type(error).__name__}


class Worker:
    """The process as its owner sees it; used by one thread at a time."""

    def __init__(self, opens: Opens) -> None:
        self.opens = opens
        self.process: BaseProcess
        self.connection: Connection
        self.ready = False
        self.start()

    def start(self) -> None:
        """Start the process, without waiting for it."""
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.opens), daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False

    def ask(self, seconds: float, do: str, **rest: Any) -> Any:
        """The answer; raises TooSlow after `seconds`, InputError where the request is refused."""
        try:
            self._wait()
            self.connection.send_bytes(json.dumps({"do": do, **rest}).encode())
            if not self.connection.poll(seconds):
                raise TooSlow
            found = json.loads(self.connection.recv_bytes(MOST_BYTES))
        except (TooSlow, EOFError, OSError) as error:
            self.end()
            self.start()
            raise TooSlow from error
        if "refused" in found:
            raise InputError(found["refused"])
        if "failed" in found:
            raise Failed(found["failed"])
        return found["answer"]

    def end(self) -> None:
        """End the process, whatever it does."""
        self.connection.close()
        self.process.kill()
        self.process.join()

    def _wait(self) -> None:
        if self.ready:
            return
        if not self.connection.poll(OPENING):
            raise TooSlow
        self.ready = self.connection.recv_bytes() == READY
