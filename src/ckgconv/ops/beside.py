"""Launches beside the main chain of a captured step.

A step is a chain of launches, each waiting for the one before, but not all of it hangs together: nobody reads the
gradient of a matrix before the update, nor the stem of the nodes before the blocks. Inside `overlapping` such launches
run on a second stream. The node pass, moreover, occupies half of a large GPU: other work of the step that wants the
rest, such as the batch of the next one, begins where the network calls `has_room`.

Elsewhere everything runs where it stands, and none of these functions does anything.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Overlap:
    """The second stream of a step, and work that waits for room."""

    side: torch.cuda.Stream
    waiting: Callable[[], None] | None
    forked: bool = False


# Not a context variable: backward passes run on threads of their own.
_overlap: Overlap | None = None


@contextmanager
def overlapping(side: torch.cuda.Stream, waiting: Callable[[], None]) -> Iterator[None]:
    """Within, `beside` runs on `side`, and `waiting` is called once, where there is room or else at the end."""
    global _overlap
    _overlap = Overlap(side, waiting)
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
        waiting()


@contextmanager
def beside(*inputs: Tensor) -> Iterator[None]:
    """Launches that read `inputs` and all that was computed before, and for which only `together` waits."""
    if _overlap is None:
        yield
        return
    side, _overlap.forked = _overlap.side, True
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield
    for value in inputs:
        # Its memory may not serve others while the side stream still reads it.
        value.record_stream(side)


def together(*outputs: Tensor) -> None:
    """Wait for everything beside; `outputs` were computed there and are read from here on."""
    if _overlap is None or not _overlap.forked:
        return
    main = torch.cuda.current_stream()
    main.wait_stream(_overlap.side)
    for value in outputs:
        value.record_stream(main)
