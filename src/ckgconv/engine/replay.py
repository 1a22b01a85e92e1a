"""Steps as CUDA graphs: a whole training step, or a whole evaluation step, is replayed by one call.

The batches of an epoch lie on the device as a table of graph numbers. A step works on the batch in one of two slots,
while another stream assembles the next batch into the other: supports and targets are many small launches, and walks
run concurrently with the node pass, which leaves most of the device idle. One CUDA graph assembles the first batch of
an epoch; then two, one per slot, are replayed alternately, or, where steps are short, one of eight steps. Each of the
two streams has its own counter on the device for the next row of the table, so that neither waits for the other.

A captured step cannot change: batches that do not fit its capacity are refused, and the caller captures again.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ckgconv.backends.cuda.assembly import Capacity
from ckgconv.backends.cuda.compilation import ahead
from ckgconv.backends.cuda.streams import IN_ORDER, SideStreams, Streams
from ckgconv.backends.cuda.supports import sums_in_fixed_order
from ckgconv.checks import InputError, require
from ckgconv.engine.learner import Learner
from ckgconv.engine.samples import Sample, Source
from ckgconv.engine.step import Keep
from ckgconv.ops.precision import without_autocast

WARM_UPS = 2
SIDE_STREAMS = 4
STEPS_PER_GRAPH = 8  # even, for the two slots; replaying a CUDA graph costs 20 µs, a step of ZINC 1 ms
SHORT_PAIRS = 2**17  # steps of at most this many pairs share a CUDA graph
# A later epoch whose largest batch is a little larger should not require another capture.
SLACK = 1.05

Work = Callable[[Sample, Keep, Streams], None]


class Replay:
    """A captured step, replayed on each of a table of batches.

    Args:
        source: of samples; the model is on a GPU.
        batches: [S, B] graph numbers on the host, -1 for none; `run` takes others of the same shape.
        split: whose targets the samples carry.
        work: the step on one sample; passes a value of fixed shape to `keep` as soon as it is computed.
    """

    def __init__(self, source: Source, batches: Tensor, split: str, work: Work) -> None:
        learner = source.learner
        self.source = source
        self.split = split
        self.work = work
        self.capacity = widened_capacity(source.sizes.needed(batches))
        steps, width = batches.shape
        device = learner.fabric.device
        self.table = torch.full((steps + 1, width), -1, device=device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)  # row of the table that this step works on
        self.upcoming = torch.zeros_like(self.counter)  # row of the table that is assembled next
        # Where several launches are ready, those of the critical path go first.
        self.main = torch.cuda.Stream(device, priority=-1)
        self.sides = [torch.cuda.Stream(device) for _ in range(SIDE_STREAMS)]
        self.assembly = torch.cuda.Stream(device)
        self.table[:steps] = batches.to(device)
        self.window = source.window(self.capacity)
        self._fill_window(batches, 0)
        self.values = torch.zeros(0)
        self.several: torch.cuda.CUDAGraph | None = None  # STEPS_PER_GRAPH steps
        try:
            with _any_algorithm(sums_in_fixed_order(learner.model)):
                self.slots = [self._sample(), self._sample()]
                self._capture()
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"A batch of up to {self.capacity.pairs:,} pairs does not fit into the GPU's memory: choose a "
                f"smaller training.batch_size, or a support of fewer pairs (a number of hops, 'sparse_global')."
            ) from error

    def fits(self, batches: Tensor) -> bool:
        """Whether the batches can be run without another capture."""
        same_steps = batches.shape[0] == self.table.shape[0] - 1
        return same_steps and self.capacity.holds(self.source.sizes.needed(batches))

    def run(self, batches: Tensor) -> Tensor:
        """Run all steps; returns what they passed to `keep`, [S, …]."""
        require(self.fits(batches), "The batches do not fit the captured step: capture a step for them.")
        self.table[:-1] = batches.to(self.table.device)
        self._fill_window(batches, 0)
        self.first.replay()
        step = 0
        while step < batches.shape[0]:
            if self.several is not None and step + STEPS_PER_GRAPH <= batches.shape[0]:
                self.several.replay()
                step += STEPS_PER_GRAPH
            else:
                self._fill_window(batches, step + 1)
                self.graphs[step % 2].replay()
                step += 1
        return self.values.clone()

    def _sample(self, streams: Streams = IN_ORDER) -> Sample:
        numbers = self.table.index_select(0, self.upcoming).squeeze(0)
        data = self.source.learner.data
        if self.window is not None:
            data = self.window.store
            numbers = torch.where(numbers >= 0, torch.arange(numbers.shape[0], device=numbers.device), -1)
        return self.source.sample(data, numbers, self.capacity, self.split, streams)

    def _fill_window(self, batches: Tensor, step: int) -> None:
        """Fill the window, where the data set needs one, with the batch of a step."""
        if self.window is not None and step < batches.shape[0]:
            self.window.load(batches[step])

    def _step(self, slot: int) -> None:
        """Work on the batch in one slot while the next batch is assembled into the other."""
        main = torch.cuda.current_stream()
        # Assembly waits for nothing that this step launches, only for what precedes it.
        step_start = main.record_event()

        def assemble() -> None:
            self.assembly.wait_event(step_start)
            with torch.cuda.stream(self.assembly), without_autocast(self.table):
                self._assemble(1 - slot, streams)

        streams = SideStreams(self.sides, assemble)
        self.work(self.slots[slot], partial(self._keep, streams), streams)
        streams.finish()
        main.wait_stream(self.assembly)

    def _assemble(self, slot: int, streams: Streams = IN_ORDER) -> None:
        """Fill a slot with the upcoming batch."""
        _copy(self.slots[slot], self._sample(streams))
        self.upcoming.add_(1)

    def _keep(self, streams: Streams, value: Tensor) -> None:
        """Store the value of the current step, on a side stream."""
        if not self.values.numel():
            self.values = value.new_zeros(self.table.shape[0] - 1, *value.shape)
        with streams.side_stream(value):
            self.values.index_copy_(0, self.counter, value.unsqueeze(0))
            self.counter.add_(1)

    def _begin(self) -> None:
        """Reset the counters and fill the first slot with the first batch."""
        self.counter.zero_()
        self.upcoming.zero_()
        self._assemble(0)

    def _capture(self) -> None:
        """Capture all CUDA graphs, after steps that compile the Triton kernels and whose effects are undone."""
        learner = self.source.learner
        kept = _state(learner)
        generator = torch.cuda.get_rng_state(learner.fabric.device)
        self.main.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.main):
            self._begin()  # the batch is a real one: indices that nobody wrote could lie anywhere
            with ahead():
                self.work(self.slots[0], _ignore, IN_ORDER)
            for _ in range(WARM_UPS):
                self._begin()
                self._step(0)
        torch.cuda.current_stream().wait_stream(self.main)
        torch.cuda.synchronize()
        pool = torch.cuda.graph_pool_handle()
        with _nothing_collected():
            self.first = self._graph(pool, self._begin)
            self.graphs = [self._graph(pool, partial(self._steps, [slot])) for slot in (0, 1)]
            # With a window the host fills it before every step, so steps cannot share a CUDA graph.
            if self.window is None and self.capacity.pairs <= SHORT_PAIRS and self.table.shape[0] > STEPS_PER_GRAPH:
                self.several = self._graph(pool, partial(self._steps, [0, 1] * (STEPS_PER_GRAPH // 2)))
        _restore(learner, kept)
        torch.cuda.set_rng_state(generator, learner.fabric.device)

    def _steps(self, slots: list[int]) -> None:
        for slot in slots:
            self._step(slot)

    def _graph(self, pool: Any, launches: Callable[[], object]) -> torch.cuda.CUDAGraph:
        """The launches as a CUDA graph."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=self.main):
            launches()
        return graph


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Let Python's garbage collector wait: CUDA graphs of an earlier learner, whose references form a cycle, would be
    destroyed in the middle of a capture, which makes the capture fail.
    """
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _any_algorithm(allowed: bool) -> Iterator[None]:
    """Let torch use its fastest algorithms where this is `allowed`: where no result of the step depends on the order
    of a sum.

    Torch's deterministic algorithms sort indices first, and take a third of a captured step. The fused passes sum in a
    fixed order; what is left to torch adds single values to zeros, or ones to counts.
    """
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(before and not allowed, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=True)


def _ignore(value: Tensor) -> None:
    """Keep nothing."""


def padded_table(graphs: Tensor, width: int) -> Tensor:
    """Graph numbers on the host in rows of `width`, [S, width]; the last row ends with -1 where it is not full."""
    table = torch.full((-(-graphs.shape[0] // width), width), -1)
    table.view(-1)[: graphs.shape[0]] = graphs
    return table


def widened_capacity(needed: Capacity) -> Capacity:
    """The capacity needed, with `SLACK`."""
    return Capacity(
        graphs=needed.graphs,
        nodes=int(needed.nodes * SLACK),
        pairs=int(needed.pairs * SLACK),
        edges=int(needed.edges * SLACK),
        largest=needed.largest,
    )


def _copy(target: Sample, source: Sample) -> None:
    """Copy a sample into the tensors of a slot."""
    targets, sources = _tensors(target), _tensors(source)
    for dtype in {value.dtype for value in sources}:
        # Dense tensors of one dtype are copied by one launch.
        chosen = [index for index, value in enumerate(sources) if value.dtype == dtype]
        torch._foreach_copy_([targets[index] for index in chosen], [sources[index] for index in chosen])


def _tensors(sample: Sample) -> list[Tensor]:
    leaves = pytree.tree_leaves((sample.batch, sample.target, sample.weight))
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


@dataclass
class _State:
    """What a training step changes: parameters and buffers of the model, their average, moments of each parameter."""

    model: dict[str, Tensor]
    average: dict[str, Tensor]
    moments: list[tuple[Tensor, dict[str, Tensor]]]


def _state(learner: Learner) -> _State:
    state: Any = learner.optimizer.optimizer.state
    average = {} if learner.average is None else learner.average.tensors()
    return _State(
        {name: value.clone() for name, value in learner.model.state_dict().items()},
        {name: value.clone() for name, value in average.items()},
        [(parameter, {key: value.clone() for key, value in each.items()}) for parameter, each in state.items()],
    )


def _restore(learner: Learner, kept: _State) -> None:
    """Undo the warm-up, in place: captured steps read and write these tensors."""
    learner.model.load_state_dict(kept.model)
    if learner.average is not None:
        learner.average.load(kept.average)
    state: Any = learner.optimizer.optimizer.state
    before = dict(kept.moments)
    for parameter, each in state.items():
        for key, value in each.items():
            if parameter in before:
                value.copy_(before[parameter][key])
            else:  # created by the warm-up
                value.zero_()
