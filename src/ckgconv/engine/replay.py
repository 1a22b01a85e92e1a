"""Steps as CUDA graphs: a whole training step, or a whole evaluation step, is one launch.

The batches of an epoch lie on the device as a table of graph numbers. A step works on the batch in one of two slots,
while another stream assembles the next batch into the other: supports and targets are many small launches, and walks
run concurrently with the node pass, which leaves most of the device idle. One graph assembles the first batch of an
epoch; two, one per slot, are then replayed in turn, and where steps are short a graph of eight of them. Counters on the
device say which row is next, one for each stream, so that neither waits for the other's.

A captured step cannot change: batches that do not fit its capacity are refused, and the caller captures anew.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ckgconv.backends.cuda.assembly import Capacity
from ckgconv.backends.cuda.schedule import IN_ORDER, InOrder, Schedule
from ckgconv.backends.cuda.supports import sums_in_fixed_order
from ckgconv.checks import InputError, require
from ckgconv.engine.learner import Learner
from ckgconv.engine.samples import Sample, Source

WARM_UPS = 2
SIDE_STREAMS = 4
STEPS_PER_GRAPH = 8  # an even number; a launch costs 20 µs, of the millisecond that a step of ZINC takes
SHORT_PAIRS = 2**17  # pairs of a step, up to which several share a graph
# An epoch that needs a little more than the ones before it should not capture anew.
SLACK = 1.05

Keep = Callable[[Tensor], None]
Work = Callable[[Sample, Keep, InOrder], None]


class Replay:
    """`work` on each of a table of batches.

    Args:
        source: of samples; model and data are on a GPU.
        batches: [S, B] graph numbers on the host, -1 for none; others of the same shape may follow.
        split: whose targets the samples carry.
        work: on a sample; hands a value of fixed shape to `keep`, as soon as it is known, for every step.
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
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)  # the batch of this step
        self.upcoming = torch.zeros_like(self.counter)  # the batch that is assembled
        # The critical path goes first wherever several launches are ready.
        self.main = torch.cuda.Stream(device, priority=-1)
        self.sides = [torch.cuda.Stream(device) for _ in range(SIDE_STREAMS)]
        self.assembly = torch.cuda.Stream(device)
        self.table[:steps] = batches.to(device)
        self.window = source.window(self.capacity)
        self._show(batches, 0)
        self.values = torch.zeros(0)
        self.several: torch.cuda.CUDAGraph | None = None
        try:
            with _any_algorithm(sums_in_fixed_order(learner.model)):
                self.slots = [self._sample(), self._sample()]
                self._capture()
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"A batch of up to {self.capacity.pairs:,} pairs does not fit into the memory of the GPU: choose a "
                f"smaller training.batch_size, or a support of fewer pairs (a number of hops, 'sparse_global')."
            ) from error

    def fits(self, batches: Tensor) -> bool:
        """Whether the batches can be run without capturing anew."""
        same = batches.shape[0] == self.table.shape[0] - 1
        return same and self.capacity.holds(self.source.sizes.needed(batches))

    def run(self, batches: Tensor) -> Tensor:
        """Values [S, …] of all steps."""
        require(self.fits(batches), "The batches do not fit the captured step: capture it anew for them.")
        self.table[:-1] = batches.to(self.table.device)
        self._show(batches, 0)
        self.first.replay()
        step = 0
        while step < batches.shape[0]:
            if self.several is not None and step + STEPS_PER_GRAPH <= batches.shape[0]:
                self.several.replay()
                step += STEPS_PER_GRAPH
            else:
                self._show(batches, step + 1)
                self.graphs[step % 2].replay()
                step += 1
        return self.values.clone()

    def _sample(self, schedule: InOrder = IN_ORDER) -> Sample:
        numbers = self.table.index_select(0, self.upcoming).squeeze(0)
        data = self.source.learner.data
        if self.window is not None:
            data = self.window.store
            numbers = torch.where(numbers >= 0, torch.arange(numbers.shape[0], device=numbers.device), -1)
        return self.source.sample(data, numbers, self.capacity, self.split, schedule)

    def _show(self, batches: Tensor, step: int) -> None:
        """Fill the window, if there is one, with the batch of a step."""
        if self.window is not None and step < batches.shape[0]:
            self.window.load(batches[step])

    def _step(self, slot: int) -> None:
        """Work on one slot while the other is filled for the next step, from the beginning of this one on."""
        main = torch.cuda.current_stream()
        begin = main.record_event()

        def assemble() -> None:
            self.assembly.wait_event(begin)
            with torch.cuda.stream(self.assembly), torch.autocast("cuda", enabled=False):
                self._assemble(1 - slot, schedule)

        schedule = Schedule(self.sides, assemble)
        self.work(self.slots[slot], partial(self._keep, schedule), schedule)
        schedule.finish()
        main.wait_stream(self.assembly)

    def _assemble(self, slot: int, schedule: InOrder = IN_ORDER) -> None:
        """Fill a slot with the upcoming batch."""
        _copy(self.slots[slot], self._sample(schedule))
        self.upcoming.add_(1)

    def _keep(self, schedule: InOrder, value: Tensor) -> None:
        """Store the value of the current step, on a side stream."""
        if not self.values.numel():
            self.values = value.new_zeros(self.table.shape[0] - 1, *value.shape)
        with schedule.side_stream(value):
            self.values.index_copy_(0, self.counter, value.unsqueeze(0))
            self.counter.add_(1)

    def _begin(self) -> None:
        """Fill the first slot with the first batch."""
        self.counter.zero_()
        self.upcoming.zero_()
        self._assemble(0)

    def _capture(self) -> None:
        """One graph per slot and one of many steps, after steps that compile kernels and whose effects are undone."""
        learner = self.source.learner
        kept = _state(learner)
        generator = torch.cuda.get_rng_state(learner.fabric.device)
        self.main.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.main):
            for _ in range(WARM_UPS):
                self._begin()
                self._step(0)
        torch.cuda.current_stream().wait_stream(self.main)
        torch.cuda.synchronize()
        pool = torch.cuda.graph_pool_handle()
        self.first = self._graph(pool, self._begin)
        self.graphs = [self._graph(pool, partial(self._steps, [slot])) for slot in (0, 1)]
        # Steps that read from the host wait for it one by one.
        if self.window is None and self.capacity.pairs <= SHORT_PAIRS and self.table.shape[0] > STEPS_PER_GRAPH:
            self.several = self._graph(pool, partial(self._steps, [0, 1] * (STEPS_PER_GRAPH // 2)))
        _restore(learner, kept)
        torch.cuda.set_rng_state(generator, learner.fabric.device)

    def _steps(self, slots: list[int]) -> None:
        for slot in slots:
            self._step(slot)

    def _graph(self, pool: Any, launches: Callable[[], object]) -> torch.cuda.CUDAGraph:
        """The launches as a graph."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=self.main):
            launches()
        return graph


@contextmanager
def _any_algorithm(allowed: bool) -> Iterator[None]:
    """Torch's fastest algorithms, where no sum of the step depends on an order.

    Its deterministic ones sort indices first, and cost a third of a captured step. The passes sum in a fixed order;
    what is left to torch adds single values to zeros, or ones to counts.
    """
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(before and not allowed, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=True)


def padded_table(graphs: Tensor, width: int) -> Tensor:
    """Graph numbers on the host in rows of `width`, [S, width]; the last row ends with -1 where it is not full."""
    table = torch.full((-(-graphs.shape[0] // width), width), -1)
    table.view(-1)[: graphs.shape[0]] = graphs
    return table


def widened_capacity(needed: Capacity) -> Capacity:
    """A little more than needed."""
    return Capacity(
        graphs=needed.graphs,
        nodes=int(needed.nodes * SLACK),
        pairs=int(needed.pairs * SLACK),
        edges=int(needed.edges * SLACK),
        largest=needed.largest,
    )


def _copy(target: Sample, source: Sample) -> None:
    """Into the tensors of a slot."""
    places, values = _tensors(target), _tensors(source)
    for dtype in {value.dtype for value in values}:
        # Dense tensors of one dtype are copied by one launch.
        chosen = [place for place, value in enumerate(values) if value.dtype == dtype]
        torch._foreach_copy_([places[place] for place in chosen], [values[place] for place in chosen])


def _tensors(value: Sample) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves((value.batch, value.target)) if isinstance(leaf, Tensor)]


@dataclass
class _State:
    model: dict[str, Tensor]
    moments: list[tuple[Tensor, dict[str, Tensor]]]


def _state(learner: Learner) -> _State:
    state: Any = learner.optimizer.optimizer.state
    return _State(
        {name: value.clone() for name, value in learner.model.state_dict().items()},
        [(parameter, {key: value.clone() for key, value in each.items()}) for parameter, each in state.items()],
    )


def _restore(learner: Learner, kept: _State) -> None:
    """In place: captured steps read and write these very tensors."""
    learner.model.load_state_dict(kept.model)
    state: Any = learner.optimizer.optimizer.state
    before = dict(kept.moments)
    for parameter, each in state.items():
        for key, value in each.items():
            if parameter in before:
                value.copy_(before[parameter][key])
            else:
                value.zero_()
