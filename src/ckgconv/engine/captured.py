"""What is captured: the training step and the evaluation step of a learner."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ckgconv.data.packed import ragged
from ckgconv.engine.batches import evaluation_batches
from ckgconv.engine.capture import Replay, padded_table
from ckgconv.engine.learner import Learner
from ckgconv.engine.optim import update
from ckgconv.engine.static import Sample, sizes_of
from ckgconv.tasks.losses import only


def captured_losses(learner: Learner, batches: list[Tensor]) -> Iterator[tuple[Tensor, float]]:
    """Train on the batches of an epoch; each with its loss."""
    table = padded_table([batch.cpu() for batch in batches], learner.recipe.batch_size)
    learner.model.train()
    losses = _replay(learner, "train", table).run(table)
    yield from zip(batches, losses.tolist(), strict=True)


def captured_predictions(learner: Learner, split: str) -> tuple[Tensor, Tensor]:
    """Predictions [M, T] and targets of a split, in the units of the data."""
    data = learner.data
    graphs = data.split(split)
    batches = list(evaluation_batches(graphs.cpu(), learner.recipe.batch_size, 0, 1))
    table = padded_table(batches, learner.recipe.batch_size)
    learner.model.eval()
    predicted = _replay(learner, split, table).run(table)
    steps, rows = predicted.shape[:2]
    assert data.y is not None
    if not data.node_targets:
        return predicted.flatten(0, 1)[: graphs.shape[0]], data.y[graphs]
    sizes = learner.replays[split].sizes.nodes
    counts = torch.stack([sizes[batch].sum() for batch in batches]).to(graphs.device)
    first = torch.arange(steps, device=graphs.device) * rows
    place, _ = ragged(torch.stack([first, first + counts]).T.reshape(-1), 2 * torch.arange(steps, device=graphs.device))
    nodes, _ = ragged(data.node_ptr, graphs)
    y = data.y[nodes]
    if data.node_split is not None:
        y = only(y, data.node_split[nodes] == ("train", "val", "test").index(split), learner.recipe.loss)
    return predicted.flatten(0, 1)[place], y


def _replay(learner: Learner, name: str, table: Tensor) -> Replay:
    """The captured step of that name, captured anew where it does not exist or does not fit."""
    replay: Replay | None = learner.replays.get(name)
    if replay is None or not replay.fits(table):
        learner.replays.pop(name, None)
        work = training_work if name == "train" else evaluation_work
        replay = Replay(learner, table, name, sizes_of(learner), lambda sample: work(learner, sample))
        learner.replays[name] = replay
    return replay


def training_work(learner: Learner, sample: Sample) -> Tensor:
    """Forward, backward, clipping, update; the loss."""
    learner.optimizer.zero_grad(set_to_none=True)
    loss = learner.loss(learner.forward(sample.batch), sample.target)
    loss.backward()
    update(learner.model, learner.optimizer, learner.recipe)
    return loss.detach()


def evaluation_work(learner: Learner, sample: Sample) -> Tensor:
    """Predictions [B, T] or [N, T]."""
    return learner.predicted(sample.batch)
