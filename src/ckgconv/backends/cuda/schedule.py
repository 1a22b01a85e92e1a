"""Launches beside the main chain of a captured step.

A step is a chain of launches, each waiting for the one before, but not all of it hangs together: nobody reads
gradients of parameters before the update, nor the stem of the nodes before the blocks. Inside `overlapping` such
launches run on other streams, on several in turn, since they need not wait for each other either. The node pass,
moreover, occupies half of a large GPU: other work of the step that wants the rest, such as the walks of the next batch,
begins where the network calls `has_room`. The pairs pass is the opposite: its programs take every place there is, and
one of another launch makes the next stage wait. What is `put_off` begins behind it, where the main chain calls
`has_places`.

Elsewhere everything runs where it stands, and none of these functions does anything.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Overlap:
    """The other streams of a step, what prepares the next one, and what may not be freed before they have read it."""

    main: torch.cuda.Stream
    sides: Sequence[torch.cuda.Stream]
    prepare: Callable[[], None] | None
    turn: int = 0
    held: list[Tensor] = field(default_factory=list)
    room: torch.cuda.Event | None = None
    waiting: list[tuple[Callable[[], None], tuple[Tensor, ...]]] = field(default_factory=list)

    @property
    def begun(self) -> Sequence[torch.cuda.Stream]:
        """The streams that are part of this step."""
        return self.sides[: self.turn]

    def next_side(self) -> torch.cuda.Stream:
        """The stream whose turn it is."""
        self.turn += 1
        return self.sides[(self.turn - 1) % len(self.sides)]


# Not a context variable: backward passes run on threads of their own.
_overlap: Overlap | None = None


@contextmanager
def overlapping(sides: Sequence[torch.cuda.Stream], prepare: Callable[[], None]) -> Iterator[None]:
    """Within, `beside` runs on `sides`, and `prepare` is called once, at `has_room` or else at the end.

    Its launches are on a stream of its own and begin when that may; only what follows `until_room` waits for the room.
    """
    global _overlap
    _overlap = Overlap(torch.cuda.current_stream(), sides, prepare)
    try:
        yield
        has_room()
        together()
    finally:
        _overlap = None


def has_room() -> None:
    """The launches that follow leave most of the device idle."""
    if _overlap is not None and _overlap.prepare is not None:
        prepare, _overlap.prepare = _overlap.prepare, None
        _overlap.room = torch.cuda.current_stream().record_event()
        prepare()


def until_room() -> None:
    """What follows on this stream takes much of the device, and waits for `has_room`."""
    if _overlap is not None and _overlap.room is not None:
        torch.cuda.current_stream().wait_event(_overlap.room)


def now() -> torch.cuda.Event | None:
    """This point of the main chain, for `beside` and `has_places`."""
    return None if _overlap is None else _overlap.main.record_event()


@contextmanager
def beside(*inputs: Tensor, since: torch.cuda.Event | None = None) -> Iterator[None]:
    """Launches for which only `together` waits, and whose results nobody reads before it.

    They may read all that was computed before, or before an earlier point of the main chain where they begin then;
    `inputs` are those of it that could be freed meanwhile. Those that begin earlier need a stream which this step has
    not used: one that has may be given memory which the main chain has freed and not yet read.
    """
    if _overlap is None:
        yield
        return
    assert since is None or _overlap.turn < len(_overlap.sides)
    side = _overlap.next_side()
    if since is None:
        side.wait_stream(torch.cuda.current_stream())
    else:
        side.wait_event(since)
    with torch.cuda.stream(side):
        yield
    _overlap.held += inputs


def put_off(launches: Callable[[], None], *inputs: Tensor) -> None:
    """Launches for which only `together` waits, and which take many places: they begin, beside, at `has_places`.

    What they write is allocated before; `inputs` are tensors they read or write that could be freed meanwhile. Those of
    another stream than the main chain run where they stand.
    """
    if _overlap is None or torch.cuda.current_stream() != _overlap.main:
        launches()
    else:
        _overlap.waiting.append((launches, inputs))


def has_places(since: torch.cuda.Event | None = None) -> None:
    """The launches that follow in the main chain leave places on the device; elsewhere it means nothing.

    Whatever is launched beside from now on begins here at the earliest, or at an earlier point of the main chain that
    lies behind all that was put off. Launches that wait for the same one begin a microsecond after each other, in the
    order in which they were called: the main chain goes first where its next launch is called before this.
    """
    if _overlap is None or torch.cuda.current_stream() != _overlap.main:
        return
    since = since or _overlap.main.record_event()
    for side in _overlap.begun:
        side.wait_event(since)
    waiting, _overlap.waiting = _overlap.waiting, []
    for launches, inputs in waiting:
        side = _overlap.next_side()
        side.wait_event(since)
        with torch.cuda.stream(side):
            launches()
        _overlap.held += inputs


def together() -> None:
    """Wait for everything beside, and for what was put off."""
    if _overlap is None:
        return
    has_places()
    for side in _overlap.begun:
        _overlap.main.wait_stream(side)
    # Whoever gets this memory next is behind the join: the main stream, or a side that has begun and forks behind it.
    _overlap.held.clear()
