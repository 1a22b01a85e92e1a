"""How fast training is: times of a step, of its parts and of an epoch, memory, and bandwidth next to a plain copy's.

On a GPU whole epochs are timed as they run, captured; the times of the parts are differences between captured steps
that stop earlier. The next batch is assembled concurrently, so `data_ms` does not add to the others. Elsewhere steps
are timed one after the other, and the time of an epoch is computed from their median.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.streams import Streams
from ckgconv.checks import require
from ckgconv.engine.batches import training_batches
from ckgconv.engine.epoch import shared_source, train_epoch, training_replay
from ckgconv.engine.learner import Learner
from ckgconv.engine.machine import device_name, peak_memory_mb
from ckgconv.engine.replay import Replay, Work, padded_table
from ckgconv.engine.samples import Sample, eager_sample
from ckgconv.engine.step import Keep, Part, step_parts, training_step

COPY_BYTES = 2**28
WARM_UPS = 2
EPOCHS = 5  # their median is reported: single epochs of ZINC differ by 5 %


def measure(learner: Learner, steps: int) -> dict[str, float | int | str]:
    """All measurements; `steps` steps are timed, after a warm-up."""
    require(
        learner.recipe.sampling.kind == "none",
        "Steps on whole graphs are timed, not on samples: set training.sampling.kind to 'none', or run "
        "benchmarks/large_graph.py.",
    )
    device = learner.fabric.device
    times = _captured_times(learner, steps) if learner.captures else _eager_times(learner, steps)
    size = min(learner.recipe.batch_size, len(learner.data.train))
    if "epoch_s" not in times:
        times["epoch_s"] = len(learner.data.train) * times["step_ms"] / 1e3 / size
    return {
        "device": device_name(device),
        **times,
        "graphs_per_s": len(learner.data.train) / times["epoch_s"],
        "peak_memory_mb": peak_memory_mb(device),
        **pair_bandwidth(learner, times["step_ms"]),
        "copy_gb_s": copy_speed(device),
    }


def pair_bandwidth(learner: Learner, step_ms: float) -> dict[str, float]:
    """GB/s from the least a mean step must move through pair tensors; empty where the model does not declare it."""
    data = learner.data
    size = min(learner.recipe.batch_size, len(data.train))
    pairs = float(data.node_ptr.diff()[data.train].square().float().mean()) * size
    with learner.fabric.autocast():
        autocast = torch.is_autocast_enabled(learner.fabric.device.type)
    itemsize = 2 if autocast else learner.model.dtype.itemsize
    values = learner.model.pair_traffic
    return {"pairs_gb_s": values * pairs * itemsize / step_ms / 1e6} if values else {}


def _captured_times(learner: Learner, steps: int) -> dict[str, float]:
    """Milliseconds of the parts of a step, and seconds of an epoch."""
    graphs = learner.data.train.cpu()
    table = padded_table(graphs[torch.randperm(len(graphs))], learner.recipe.batch_size)[:steps]
    source = shared_source(learner)
    learner.model.train()
    works: dict[str, Work] = {"data": _assemble_only}
    works |= {part.value: partial(training_step, learner, last=part) for part in Part}
    times = {}
    for name, work in works.items():
        replay = Replay(source, table, "train", work)
        replay.run(table)
        times[name] = 1e3 * _seconds(learner, partial(replay.run, table)) / table.shape[0]
    with torch.random.fork_rng(devices=[]):
        # The order that the epoch will draw: its largest batch must fit the capacity.
        order = graphs[torch.randperm(len(graphs))]
    training_replay(learner, padded_table(order, learner.recipe.batch_size))
    epochs = [_seconds(learner, lambda: train_epoch(learner, 0, lambda count, loss: None)) for _ in range(EPOCHS)]
    return {
        "step_ms": times[Part.UPDATE],
        "data_ms": times["data"],
        "forward_ms": times[Part.FORWARD],
        "backward_ms": times[Part.BACKWARD] - times[Part.FORWARD],
        "update_ms": times[Part.UPDATE] - times[Part.BACKWARD],
        "epoch_s": statistics.median(epochs),
    }


def _assemble_only(sample: Sample, keep: Keep, streams: Streams) -> None:
    """A step without work of its own: its time is that of assembling the next batch."""
    keep(sample.target.float().sum())


def _eager_times(learner: Learner, steps: int) -> dict[str, float]:
    """Median milliseconds of the parts of a step, after a warm-up of two steps."""
    learner.wrapped.train()
    batches = _batches(learner, steps + WARM_UPS)
    times = [_timed_step(learner, graphs) for graphs in batches][WARM_UPS:]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    names = ("data_ms", *(f"{part.value}_ms" for part in Part))
    return {"step_ms": statistics.median(map(sum, times)), **dict(zip(names, medians, strict=True))}


def _timed_step(learner: Learner, graphs: Tensor) -> list[float]:
    """Milliseconds of data, forward, backward and update of one step."""
    marks = [_now(learner)]
    sample = eager_sample(learner, graphs, "train")
    marks.append(_now(learner))
    marks += [_now(learner) for _ in step_parts(learner, sample)]
    return [1e3 * (after - before) for before, after in pairwise(marks)]


def _batches(learner: Learner, count: int) -> Iterator[Tensor]:
    """`count` training batches, over as many epochs as needed."""
    while count > 0:
        for graphs in training_batches(learner.data.train, learner.recipe.batch_size, 0, 1):
            if count == 0:
                return
            count -= 1
            yield graphs


def copy_speed(device: torch.device) -> float:
    """Bytes read plus bytes written per second by a large copy, in GB/s: the limit for whatever is memory-bound."""
    source = torch.rand(COPY_BYTES // 4, device=device)
    target = torch.empty_like(source)
    times = []
    for _ in range(5):
        _synchronize(device)
        start = time.perf_counter()
        target.copy_(source)
        _synchronize(device)
        times.append(time.perf_counter() - start)
    return 2 * COPY_BYTES / min(times) / 1e9


def _seconds(learner: Learner, function: Callable[[], Any]) -> float:
    start = _now(learner)
    function()
    return _now(learner) - start


def _now(learner: Learner) -> float:
    _synchronize(learner.fabric.device)
    return time.perf_counter()


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
