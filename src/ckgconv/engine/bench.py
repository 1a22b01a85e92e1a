"""How fast training is: time of a step by part, of an epoch, memory, and bandwidth against that of a plain copy.

On a GPU an epoch is timed as it runs, captured; parts are differences between captured steps that stop earlier. The
batch of the next step is assembled beside the step, so its part, `data_ms`, does not add to the others. Elsewhere some
steps are timed one after the other, and the epoch follows from their median.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ckgconv.engine.batches import training_batches
from ckgconv.engine.capture import Replay, Work, padded_table
from ckgconv.engine.captured import training_replay, training_work
from ckgconv.engine.learner import Learner
from ckgconv.engine.loop import targets, train_epoch
from ckgconv.engine.optim import update
from ckgconv.engine.record import device_name, peak_memory_mb
from ckgconv.engine.static import Sample, source_of
from ckgconv.recipe import CKGCNRecipe

COPY_BYTES = 2**28


def measure(learner: Learner, steps: int) -> dict[str, float | int | str]:
    """All figures; `steps` are timed after some that warm up."""
    device = learner.fabric.device
    times = _captured_times(learner, steps) if learner.captures else _eager_times(learner, steps)
    size = min(learner.recipe.batch_size, len(learner.data.train))
    if "epoch_s" not in times:
        times["epoch_s"] = len(learner.data.train) * times["step_ms"] / 1e3 / size
    moved = pair_traffic(learner) / times["step_ms"] / 1e6
    return {
        "device": device_name(device),
        **times,
        "graphs_per_s": len(learner.data.train) / times["epoch_s"],
        "peak_memory_mb": peak_memory_mb(device),
        "pairs_gb_s": moved,
        "copy_gb_s": copy_speed(device),
    }


def pair_traffic(learner: Learner) -> float:
    """Bytes that the pairs pass must move in a mean training step, by tensors [L, P, D] that `ops` read or write."""
    data, model = learner.data, learner.model.recipe
    size = min(learner.recipe.batch_size, len(data.train))
    pairs = float(data.node_ptr.diff()[data.train].square().float().mean()) * size
    with learner.fabric.autocast():
        short = torch.is_autocast_enabled(learner.fabric.device.type)
    item = 2 if short else next(learner.model.parameters()).itemsize
    return passes_over_pairs(model) * pairs * model.blocks * model.width * item


def passes_over_pairs(model: CKGCNRecipe) -> int:
    """How often a tensor [L, P, D] is read or written: forward, convolution, backward."""
    blocks = model.kernel.blocks
    stages = 2 * blocks + 1
    forward = stages + (stages - 1) + max(blocks - 1, 0)  # outputs, inputs but the shared first, residuals likewise
    convolution = 3  # ψ forward and backward, its gradient
    backward = 2 * stages + 2 * (stages - 1) + blocks + max(blocks - 1, 0) + 1 + min(blocks, 1)
    return forward + convolution + backward


def _captured_times(learner: Learner, steps: int) -> dict[str, float]:
    """Milliseconds of the parts of a step, and seconds of an epoch."""
    graphs = learner.data.train.cpu()
    table = padded_table(graphs[torch.randperm(len(graphs))], learner.recipe.batch_size)[:steps]
    source = source_of(learner)
    learner.model.train()
    parts: dict[str, Work] = {
        "data": lambda sample, keep: keep(sample.target.float().sum()),
        "forward": lambda sample, keep: keep(_forward(learner, sample).detach()),
        "backward": lambda sample, keep: keep(_backward(learner, sample)),
        "step": partial(training_work, learner),
    }
    times = {}
    for name, work in parts.items():
        replay = Replay(source, table, "train", work)
        replay.run(table)
        times[name] = 1e3 * _seconds(learner, partial(replay.run, table)) / table.shape[0]
    with torch.random.fork_rng(devices=[]):
        # In the order that the epoch will draw, whose largest batch must fit.
        order = graphs[torch.randperm(len(graphs))]
    training_replay(learner, padded_table(order, learner.recipe.batch_size))
    epoch = _seconds(learner, lambda: train_epoch(learner, 0, lambda count, loss: None))
    return {
        "step_ms": times["step"],
        "data_ms": times["data"],
        "forward_ms": times["forward"],
        "backward_ms": times["backward"] - times["forward"],
        "update_ms": times["step"] - times["backward"],
        "epoch_s": epoch,
    }


def _eager_times(learner: Learner, steps: int) -> dict[str, float]:
    """Median milliseconds of the parts of a step, after two steps that warm up."""
    learner.wrapped.train()
    samples = [_timed_step(learner, graphs) for graphs in _endless(learner, steps + 2)][2:]
    parts = [statistics.median(column) for column in zip(*samples, strict=True)]
    names = ("data_ms", "forward_ms", "backward_ms", "update_ms")
    return {"step_ms": statistics.median(map(sum, samples)), **dict(zip(names, parts, strict=True))}


def _timed_step(learner: Learner, graphs: Tensor) -> list[float]:
    """Milliseconds of data, forward, backward and update of one step."""
    marks = [_now(learner)]
    batch = learner.batch(graphs)
    prepared = learner.model.prepare(batch)
    marks.append(_now(learner))
    learner.optimizer.zero_grad()
    loss = learner.loss(learner.forward(prepared), targets(learner, batch, "train"))
    marks.append(_now(learner))
    learner.fabric.backward(loss)
    marks.append(_now(learner))
    update(learner.model, learner.optimizer, learner.recipe)
    marks.append(_now(learner))
    return [1e3 * (after - before) for before, after in pairwise(marks)]


def _endless(learner: Learner, count: int) -> Iterator[Tensor]:
    """So many batches, over as many epochs as that takes."""
    while count > 0:
        for graphs in training_batches(learner.data.train, learner.recipe.batch_size, 0, 1):
            if count == 0:
                return
            count -= 1
            yield graphs


def _forward(learner: Learner, sample: Sample) -> Tensor:
    return learner.loss(learner.forward(sample.batch), sample.target)


def _backward(learner: Learner, sample: Sample) -> Tensor:
    learner.optimizer.zero_grad(set_to_none=True)
    loss = _forward(learner, sample)
    loss.backward()
    return loss.detach()


def copy_speed(device: torch.device) -> float:
    """Bytes read plus bytes written per second of a large copy, in GB/s: the ceiling of whatever moves memory."""
    source = torch.rand(COPY_BYTES // 4, device=device)
    target = torch.empty_like(source)
    times = []
    for _ in range(5):
        _wait(device)
        start = time.perf_counter()
        target.copy_(source)
        _wait(device)
        times.append(time.perf_counter() - start)
    return 2 * COPY_BYTES / min(times) / 1e9


def _seconds(learner: Learner, function: Callable[[], Any]) -> float:
    start = _now(learner)
    function()
    return _now(learner) - start


def _now(learner: Learner) -> float:
    _wait(learner.fabric.device)
    return time.perf_counter()


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
