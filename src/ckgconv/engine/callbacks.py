"""Callbacks of the user, called after every step or epoch of a run; each of them can stop it.

    class Callback:
        def on_step(self, run, graphs, loss): ...     # graphs of the step and their loss; steps are then never captured
        def on_epoch(self, run, epoch): ...           # an `Epoch`, after its validation

A class has one of these or both. Training stops when one returns True or raises `StopTraining`: an unfinished epoch is
still validated and recorded, and the run ends as usual with the test of its best epoch. With several processes, one
that stops ends all.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ckgconv.checks import require
from ckgconv.engine.record import Epoch
from ckgconv.ops.all_reduce import all_reduce, several_processes

if TYPE_CHECKING:
    from ckgconv.engine.run import Run

METHODS = ("on_step", "on_epoch")


class StopTraining(Exception):
    """Raised by a callback to end training."""


class Callbacks:
    """The callbacks of a run."""

    def __init__(self, run: "Run", callbacks: Sequence[Any]) -> None:
        self.run = run
        self.callbacks = callbacks
        self.stopped = False

    def step(self, graphs: int, loss: float) -> bool:
        """Call every `on_step`; whether training stops."""
        return self._call("on_step", graphs, loss)

    def epoch(self, epoch: Epoch) -> bool:
        """Call every `on_epoch`; whether training stops."""
        return self._call("on_epoch", epoch)

    def _call(self, name: str, *arguments: object) -> bool:
        methods = [getattr(callback, name) for callback in self.callbacks if hasattr(callback, name)]
        if not methods:
            return self.stopped
        for method in methods:
            self.stopped |= _stops(method, self.run, *arguments)
        if several_processes():
            votes = torch.tensor(float(self.stopped), device=self.run.learner.fabric.device)
            self.stopped = bool(all_reduce(votes) > 0)
        return self.stopped


def check_callbacks(callbacks: Sequence[Any]) -> None:
    """Refuse an object that nothing would ever call."""
    require(isinstance(callbacks, Sequence), "callbacks is not a list: give a list of objects.")
    for callback in callbacks:
        require(
            any(callable(getattr(callback, name, None)) for name in METHODS),
            f"The callback {type(callback).__name__} has neither on_step nor on_epoch: define one of them.",
        )


def watch_steps(callbacks: Sequence[Any]) -> bool:
    """Whether any of them is called after every step."""
    return any(hasattr(callback, "on_step") for callback in callbacks)


def _stops(method: Any, run: "Run", *arguments: object) -> bool:
    try:
        return method(run, *arguments) is True
    except StopTraining:
        return True
