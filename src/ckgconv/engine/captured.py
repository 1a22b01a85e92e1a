"""What is captured: the training step and the evaluation step of a learner."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from ckgconv.backends.cuda.schedule import together
from ckgconv.data.packed import SPLITS, ragged
from ckgconv.engine.capture import Keep, Replay, padded_table
from ckgconv.engine.learner import Learner
from ckgconv.engine.optim import update
from ckgconv.engine.static import Sample, Source, source_of
from ckgconv.tasks.losses import only

# Of an evaluation step: ZINC's validation then takes 9 steps in place of 32, which mostly wait.
EVALUATED_PAIRS = 2**16


def captured_losses(learner: Learner) -> Iterator[tuple[int, float]]:
    """Train on all training graphs in a random order; the number of graphs and the loss of each step."""
    graphs = learner.data.train.cpu()
    table = padded_table(graphs[torch.randperm(graphs.shape[0])], learner.recipe.batch_size)
    learner.model.train()
    losses = training_replay(learner, table).run(table)
    yield from zip((table >= 0).sum(1).tolist(), losses.tolist(), strict=True)


def captured_predictions(learner: Learner, split: str) -> tuple[Tensor, Tensor]:
    """Predictions [M, T] and targets of a split, in the units of the data."""
    data = learner.data
    graphs = data.split(split)
    table = padded_table(graphs.cpu(), evaluated_together(learner, graphs.cpu()))
    learner.model.eval()
    replay = _replay(learner, f"evaluation of {split}", split, table, evaluation_work)
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
        y = only(y, data.node_split[nodes] == SPLITS.index(split), learner.recipe.loss)
    return predicted[real], y.to(device)


def evaluated_together(learner: Learner, graphs: Tensor) -> int:
    """Graphs of an evaluation step: predictions do not hang on their batch, so it is as large as fills the device."""
    size = learner.recipe.batch_size
    pairs = float(shared_source(learner).sizes.pairs[graphs].float().mean()) if len(graphs) else 1.0
    return min(max(size, int(EVALUATED_PAIRS / max(pairs, 1.0))), max(size, len(graphs)))


def training_replay(learner: Learner, table: Tensor) -> Replay:
    """The captured training step for batches [S, B] of graph numbers."""
    return _replay(learner, "training", "train", table, training_work)


def _replay(
    learner: Learner, name: str, split: str, table: Tensor, work: Callable[[Learner, Sample, Keep], None]
) -> Replay:
    """The captured step of that name, captured anew where it does not exist or does not fit."""
    replay: Replay | None = learner.replays.get(name)
    if replay is None or not replay.fits(table):
        learner.replays.pop(name, None)
        replay = Replay(shared_source(learner), table, split, partial(work, learner))
        learner.replays[name] = replay
    return replay


def shared_source(learner: Learner) -> Source:
    """The one source of all captured steps of a learner."""
    source: Source = learner.replays.get("source") or source_of(learner)
    learner.replays["source"] = source
    return source


def training_work(learner: Learner, sample: Sample, keep: Keep) -> None:
    """Forward, backward, clipping, update; keeps the loss."""
    learner.optimizer.zero_grad(set_to_none=True)
    loss = learner.loss(learner.forward(sample.batch), sample.target)
    keep(loss.detach())
    loss.backward(learner.unit)
    together()
    update(learner.model, learner.optimizer, learner.recipe)


def evaluation_work(learner: Learner, sample: Sample, keep: Keep) -> None:
    """Keeps predictions [B, T] or [N, T]."""
    keep(learner.predicted(sample.batch))
