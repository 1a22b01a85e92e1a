"""One sweep over the graphs of a split, to train or to evaluate, eagerly or captured."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.backends.cuda.compilation import compiling
from ckgconv.data.packed import SPLITS, ragged
from ckgconv.engine.batches import evaluation_batches, training_batches
from ckgconv.engine.layerwise import node_states, predictions, share_of
from ckgconv.engine.learner import Learner
from ckgconv.engine.prepared import prepare, prepared_once
from ckgconv.engine.replay import Replay, Work, padded_table
from ckgconv.engine.samples import Sample, Source, eager_sample, source_of, targets
from ckgconv.engine.sampling import node_targets, own_graph, sampled, sampled_steps
from ckgconv.engine.step import evaluation_step, training_step
from ckgconv.graphs import GraphBatch
from ckgconv.ops.all_reduce import all_reduce
from ckgconv.pairs.memory import explaining_lack_of_memory
from ckgconv.tasks.losses import mask_targets
from ckgconv.tasks.metrics import Score

# Pairs of a captured evaluation step. ZINC's validation then takes 9 steps; 32 of the training's size would leave most
# of the GPU idle.
EVALUATED_PAIRS = 2**16


@explaining_lack_of_memory()
def train_epoch(learner: Learner, epoch: int, tick: Callable[[int, float], bool | None]) -> dict[str, Any]:
    """Train on every training graph once; `tick` is called with the number of graphs and the loss of each step.

    Where it returns True, the epoch ends there.
    """
    start = time.perf_counter()
    rate = learner.schedule.begin(epoch)
    learner.wrapped.train()
    summed, seen = 0.0, 0
    for count, loss in captured_losses(learner) if learner.captures else eager_losses(learner):
        summed += loss * count
        seen += count
        if tick(count, loss):
            break
    if learner.statistics is not None:
        learner.statistics.settle()
    return {"epoch": epoch, "train_loss": summed / max(seen, 1), "lr": rate, "seconds": time.perf_counter() - start}


def eager_losses(learner: Learner) -> Iterator[tuple[int, float]]:
    """Train on all training graphs, or nodes, in a random order; yields how many, and the loss, of each step."""
    if learner.statistics is not None:
        learner.statistics.begin()
    for count, draw in sampled_steps(learner) if sampled(learner) else _steps_on_graphs(learner):
        yield count, _step_on(learner, draw())


def _steps_on_graphs(learner: Learner) -> Iterator[tuple[int, Callable[[], Sample]]]:
    fabric = learner.fabric
    for graphs in training_batches(
        learner.data.train, learner.recipe.batch_size, fabric.global_rank, fabric.world_size
    ):
        yield graphs.shape[0], partial(eager_sample, learner, graphs, "train")


def first_sample(learner: Learner) -> None:
    """Prepare the input of a step, or refuse what the model cannot read."""
    if sampled(learner):
        next(sampled_steps(learner))[1]()
    else:
        # Captured steps do not read it again.
        (prepare if learner.captures else prepared_once)(learner, learner.data.train[:1])


def eager_step(learner: Learner, graphs: Tensor) -> float:
    """Train on the graphs of the given numbers; returns the loss of the whole batch."""
    return _step_on(learner, eager_sample(learner, graphs, "train"))


def _step_on(learner: Learner, sample: Sample) -> float:
    """Train on a sample; returns the loss of the whole batch."""
    shares: list[Tensor] = []
    training_step(learner, sample, shares.append)
    return float(all_reduce(shares[0]))


@explaining_lack_of_memory()
@torch.no_grad()
def evaluate(learner: Learner, split: str) -> float:
    """The recipe's metric on a split, in the units of the data."""
    score = Score(learner.task.metric, learner.model.outputs, learner.fabric.device)
    for predicted, target in split_predictions(learner, split):
        score.update(predicted, target)
    return score.compute()


@explaining_lack_of_memory()
@torch.no_grad()
def loss_on(learner: Learner, split: str) -> float:
    """The loss of all rows of a split at once, without dropout, in the units that the network is trained in."""
    rows = list(split_predictions(learner, split))
    if not rows:
        return math.nan
    predicted, target = (torch.cat(parts) for parts in zip(*rows, strict=True))
    predicted = learner.scale.standardise(predicted) if learner.recipe.scale_targets else predicted
    return float(all_reduce(learner.loss(predicted, target)))


def split_predictions(learner: Learner, split: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Predictions [M, T] in the units of the data, and targets, of this process's share of a split, batch by batch."""
    if learner.captures and len(learner.data.split(split)):
        yield captured_predictions(learner, split)
        return
    if sampled(learner):
        yield sampled_predictions(learner, split)
        return
    fabric, own = learner.fabric, 0
    for graphs in evaluation_batches(
        learner.data.split(split), learner.recipe.batch_size, fabric.global_rank, fabric.world_size
    ):
        prepared, own = prepared_once(learner, graphs), own + 1
        yield predict_batch(learner, prepared.batch), targets(learner, prepared, split)
    if not own and len(learner.data.split(split)):
        yield _uncounted(learner, split)


def _uncounted(learner: Learner, split: str) -> tuple[Tensor, Tensor]:
    """For a process without graphs, rows that do not count, of the shape and dtype that gathering needs."""
    prepared = prepared_once(learner, learner.data.split(split)[:1])
    target = targets(learner, prepared, split)
    counts = torch.zeros(target.shape[0], dtype=torch.bool, device=target.device)
    return predict_batch(learner, prepared.batch), mask_targets(target, counts, learner.recipe.loss)


def sampled_predictions(learner: Learner, split: str) -> tuple[Tensor, Tensor]:
    """Predictions [M, T] and targets of this process's share of the nodes of a split, by their whole supports."""
    learner.model.eval()
    rows = learner.data.target_rows(split).sort().values
    own = share_of(learner, rows)
    # A process without nodes takes one that does not count, of the shape and dtype that gathering needs.
    counted, asked = len(own) > 0, own if len(own) else rows[:1]
    target = node_targets(learner, asked)
    counts = torch.full(target.shape[:1], counted, device=target.device)
    predicted = predictions(learner, node_states(learner, own_graph(learner), asked))
    return predicted, mask_targets(target, counts, learner.recipe.loss)


@explaining_lack_of_memory()
def predict_batch(learner: Learner, batch: Data | GraphBatch) -> Tensor:
    """Predictions [M, T] in the units of the data."""
    learner.model.eval()
    return learner.predicted(batch)


def captured_losses(learner: Learner) -> Iterator[tuple[int, float]]:
    """As `eager_losses`, with steps replayed as CUDA graphs."""
    graphs = learner.data.train.cpu()
    table = padded_table(graphs[torch.randperm(graphs.shape[0])], learner.recipe.batch_size)
    learner.model.train()
    replay = training_replay(learner, table)
    if learner.statistics is not None:
        learner.statistics.begin()  # a capture has run steps of its own
    losses = replay.run(table)
    yield from zip((table >= 0).sum(1).tolist(), losses.tolist(), strict=True)


def captured_predictions(learner: Learner, split: str) -> tuple[Tensor, Tensor]:
    """Predictions [M, T] and targets of a split, in the units of the data."""
    data = learner.data
    graphs = data.split(split)
    table = padded_table(graphs.cpu(), graphs_of_evaluation(learner, graphs.cpu()))
    learner.model.eval()
    replay = _replay(learner, f"evaluation of {split}", split, table, partial(evaluation_step, learner))
    predicted = replay.run(table)
    device = predicted.device
    assert data.y is not None
    if not data.node_targets:
        return predicted.flatten(0, 1)[: graphs.shape[0]], data.y[graphs].to(device)
    filled = (replay.source.sizes.nodes[table.clamp(min=0)] * (table >= 0)).sum(1).to(device)
    real = torch.arange(predicted.shape[1], device=device) < filled.unsqueeze(-1)
    nodes, _ = ragged(data.node_ptr, graphs)
    y = data.y[nodes]
    if data.node_split is not None:
        y = mask_targets(y, data.node_split[nodes] == SPLITS.index(split), learner.recipe.loss)
    return predicted[real], y.to(device)


def graphs_of_evaluation(learner: Learner, graphs: Tensor) -> int:
    """How many graphs a captured evaluation step takes.

    Predictions do not depend on the batch, so it may be larger than in training, to fill the device.
    """
    size = learner.recipe.batch_size
    pairs = float(shared_source(learner).sizes.pairs[graphs].float().mean()) if len(graphs) else 1.0
    return min(max(size, int(EVALUATED_PAIRS / max(pairs, 1.0))), max(size, len(graphs)))


def training_replay(learner: Learner, table: Tensor) -> Replay:
    """The captured training step for batches [S, B] of graph numbers."""
    return _replay(learner, "training", "train", table, partial(training_step, learner))


def _replay(learner: Learner, name: str, split: str, table: Tensor, work: Work) -> Replay:
    """The captured step of that name, captured again where the batches do not fit it."""
    replay = learner.replays.get(name)
    if replay is None or not replay.fits(table):
        learner.replays.pop(name, None)
        with compiling(name, learner.tell):
            replay = Replay(shared_source(learner), table, split, work)
        learner.replays[name] = replay
    return replay


def shared_source(learner: Learner) -> Source:
    """The one source of all captured steps of a learner."""
    learner.source = learner.source or source_of(learner)
    return learner.source
