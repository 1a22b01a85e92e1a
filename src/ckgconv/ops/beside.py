"""Launches beside the main chain of a captured step.

A step is a chain of launches, each waiting for the one before, but not all of it hangs together: nobody reads the
gradient of a matrix before the update, nor the stem of the nodes before the blocks. Inside `overlapping` such launches
run on other streams, on several in turn, since they need not wait for each other either. The node pass, moreover,
occupies half of a large GPU: other work of the step that wants the rest, such as the walks of the next batch, begins
where the network calls `has_room`.

Elsewhere everything runs where it stands, and none of these functions does anything.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Overlap:
    """The other streams of a step, work that waits for room, and what may not be freed before they have read it."""

    sides: Sequence[torch.cuda.Stream]
    waiting: Callable[[], None] | None
    turn: int = 0
    held: list[Tensor] = field(default_factory=list)
    room: torch.cuda.Event | None = None

    def next_side(self) -> torch.cuda.Stream:
        """The stream whose turn it is."""
        self.turn += 1
        return self.sides[(self.turn - 1) % len(self.sides)]


# Not a context variable: backward passes run on threads of their own.
_overlap: Overlap | None = None


@contextmanager
def overlapping(sides: Sequence[torch.cuda.Stream], waiting: Callable[[], None]) -> Iterator[None]:
    """Within, `beside` runs on `sides`, and `waiting` is called once, where there is room or else at the end."""
    global _overlap
    _overlap = Overlap(sides, waiting)
    try:
        yield
        has_room()
        together()
    finally:
        _overlap = None


def has_room() -> None:
    """The launches that follow leave most of the device idle: what waits for that begins."""
    if _overlap is not None and _overlap.waiting is not None:
        waiting, _overlap.waiting = _overlap.waiting, None
        _overlap.room = torch.cuda.current_stream().record_event()
        waiting()


def until_room() -> None:
    """What follows on this stream takes much of the device, and waits for `has_room`."""
    if _overlap is not None and _overlap.room is not None:
        torch.cuda.current_stream().wait_event(_overlap.room)


@contextmanager
def beside(*inputs: Tensor) -> Iterator[None]:
    """Launches that read `inputs` and all that was computed before, and for which only `together` waits."""
    if _overlap is None:
        yield
        return
    side = _overlap.next_side()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield
    _overlap.held += inputs


def together() -> None:
    """Wait for everything beside."""
    if _overlap is None:
        return
    main = torch.cuda.current_stream()
    for side in _overlap.sides[: _overlap.turn]:
        main.wait_stream(side)
    # In memory of the main stream from here on: what comes next there is behind those who read it.
    _overlap.held.clear()
