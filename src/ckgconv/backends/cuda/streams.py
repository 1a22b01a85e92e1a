"""Which stream each launch of a step runs on, and what waits for what.

On one stream each launch waits for the one before it, but not every launch is on the critical path: nothing reads
gradients of parameters before the update, nor the stem of the nodes before the blocks. `SideStreams` runs such launches
on side streams, in rotation, since they need not wait for each other either.

Two passes decide when. The node pass occupies half of a large GPU, so the next batch is assembled concurrently: the
model calls `start_prefetch` there. The pairs pass fills every SM, so a concurrent launch delays its next stage: what
should not run there is deferred until the main stream calls `flush_deferred`.

The engine creates `SideStreams` for each captured step and passes it on as `streams`, to the model and to its autograd
functions, whose backward passes run on other threads. `IN_ORDER` is the default: every launch runs on the current
stream, in program order.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

Launches = Callable[[], None]


class Streams:
    """The interface, and its simplest form: everything runs on the current stream, when it is called."""

    def point(self) -> torch.cuda.Event | None:
        """This point of the main stream, for `side_stream` and `flush_deferred`."""
        return None

    @contextmanager
    def side_stream(self, *inputs: Tensor, since: torch.cuda.Event | None = None) -> Iterator[None]:
        """Launches for which only `join` waits, and whose results nothing reads before it.

        They may read everything computed before this call, or before the point `since` of the main stream where it is
        given; `inputs` are those of the tensors they read that could be freed meanwhile.
        """
        yield

    def defer(self, launches: Launches, *inputs: Tensor) -> None:
        """Launches for which only `join` waits, and which occupy many SMs: they start at `flush_deferred`.

        Their outputs are allocated before; `inputs` are tensors they read or write that could be freed meanwhile.
        """
        launches()

    def flush_deferred(self, since: torch.cuda.Event | None = None) -> None:
        """The launches that follow on the main stream leave SMs idle: start the deferred ones concurrently."""

    def start_prefetch(self) -> None:
        """The launches that follow leave most of the device idle: assemble the next batch concurrently."""

    def wait_for_prefetch(self) -> None:
        """The launches that follow on this stream occupy much of the device: let them wait for `start_prefetch`."""

    def join(self) -> None:
        """The main stream waits for all side streams, and for everything deferred."""


IN_ORDER = Streams()


class SideStreams(Streams):
    """A main stream and several side streams, for one step; created on the main stream, finished by `finish`.

    Args:
        sides: the side streams.
        prefetch: launches that prepare the next step on a stream of their own; called once, by `start_prefetch`.
    """

    def __init__(self, sides: Sequence[torch.cuda.Stream], prefetch: Launches) -> None:
        self.main = torch.cuda.current_stream()
        self.sides = sides
        self._prefetch: Launches | None = prefetch
        self._turn = 0
        self._held: list[Tensor] = []  # tensors that must not be freed before a side stream has read them
        self._prefetched: torch.cuda.Event | None = None
        self._deferred: list[tuple[Launches, tuple[Tensor, ...]]] = []

    def finish(self) -> None:
        """Start whatever has not started; the main stream waits for all of it."""
        self.start_prefetch()
        self.join()

    def start_prefetch(self) -> None:
        if self._prefetch is not None:
            prefetch, self._prefetch = self._prefetch, None
            self._prefetched = torch.cuda.current_stream().record_event()
            prefetch()

    def wait_for_prefetch(self) -> None:
        if self._prefetched is not None:
            torch.cuda.current_stream().wait_event(self._prefetched)

    def point(self) -> torch.cuda.Event | None:
        return self.main.record_event()

    @contextmanager
    def side_stream(self, *inputs: Tensor, since: torch.cuda.Event | None = None) -> Iterator[None]:
        # A stream already used in this step could be given memory that the main stream has freed but not yet read.
        assert since is None or self._turn < len(self.sides)
        side = self._next_side()
        if since is None:
            side.wait_stream(torch.cuda.current_stream())
        else:
            side.wait_event(since)
        with torch.cuda.stream(side):
            yield
        self._held += inputs

    def defer(self, launches: Launches, *inputs: Tensor) -> None:
        if torch.cuda.current_stream() != self.main:  # a side stream does not delay the main one
            launches()
        else:
            self._deferred.append((launches, inputs))

    def flush_deferred(self, since: torch.cuda.Event | None = None) -> None:
        """Everything launched on a side stream from now on starts here at the earliest, or at the point `since`.

        That point must follow everything deferred. Launches waiting on one event start 1 µs apart in call order:
        issue the main stream's next launch before this call, and it goes first.
        """
        if torch.cuda.current_stream() != self.main:
            return
        since = since or self.main.record_event()
        for side in self._begun:
            side.wait_event(since)
        deferred, self._deferred = self._deferred, []
        for launches, inputs in deferred:
            side = self._next_side()
            side.wait_event(since)
            with torch.cuda.stream(side):
                launches()
            self._held += inputs

    def join(self) -> None:
        self.flush_deferred()
        for side in self._begun:
            self.main.wait_stream(side)
        # Whatever reuses this memory runs after the join: on the main stream, or on a side stream that forks later.
        self._held.clear()

    @property
    def _begun(self) -> Sequence[torch.cuda.Stream]:
        """The streams that are part of this step."""
        return self.sides[: self._turn]

    def _next_side(self) -> torch.cuda.Stream:
        self._turn += 1
        return self.sides[(self._turn - 1) % len(self.sides)]


class StreamedModel:
    """Marks a model whose `forward(batch, streams)` chooses the stream of each of its launches."""
