"""Callbacks on the progress of a run, such as a progress bar."""

from typing import TYPE_CHECKING, Protocol

from ckgconv.engine.record import Epoch

if TYPE_CHECKING:
    from ckgconv.engine.run import Run


class Watcher(Protocol):
    """Called while a run trains; every method may do nothing.

    A method `note(sentence)`, where there is one, is told what takes a while before the first step.
    """

    def start(self, run: "Run", first_epoch: int) -> None: ...
    def step(self, graphs: int, loss: float) -> None: ...
    def epoch(self, entry: Epoch) -> None: ...
    def warn(self, sentence: str) -> None: ...


class Silence:
    """A watcher that does nothing."""

    def start(self, run: "Run", first_epoch: int) -> None: ...
    def step(self, graphs: int, loss: float) -> None: ...
    def epoch(self, entry: Epoch) -> None: ...
    def warn(self, sentence: str) -> None: ...
