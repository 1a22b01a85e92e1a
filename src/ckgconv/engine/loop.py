"""Training and evaluation of one network on one packed data set."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ckgconv.data.packed import SPLITS
from ckgconv.engine.batches import evaluation_batches, training_batches
from ckgconv.engine.captured import captured_losses, captured_predictions
from ckgconv.engine.learner import Learner
from ckgconv.engine.optim import learning_rate, set_learning_rate, update
from ckgconv.ops.all_reduce import total
from ckgconv.tasks.losses import only
from ckgconv.tasks.metrics import Score


def train_epoch(learner: Learner, epoch: int, tick: Callable[[int, float], None]) -> dict[str, Any]:
    """One pass over the training graphs; `tick` hears of the graphs and the loss of each step."""
    start = time.perf_counter()
    rate = learning_rate(epoch, learner.recipe)
    set_learning_rate(learner.optimizer, rate)
    learner.wrapped.train()
    fabric = learner.fabric
    summed, seen = 0.0, 0
    if learner.captures:
        steps = captured_losses(learner)
    else:
        batches = training_batches(learner.data.train, learner.recipe.batch_size, fabric.global_rank, fabric.world_size)
        steps = ((graphs.shape[0], training_step(learner, graphs)) for graphs in batches)
    for count, loss in steps:
        summed += loss * count
        seen += count
        tick(count, loss)
    return {"epoch": epoch, "train_loss": summed / max(seen, 1), "lr": rate, "seconds": time.perf_counter() - start}


def training_step(learner: Learner, graphs: Tensor) -> float:
    """Forward, backward, clipping, update; returns the loss of the whole batch."""
    batch = learner.batch(graphs)
    learner.optimizer.zero_grad()
    share = learner.loss(learner.forward(batch), targets(learner, batch, "train"))
    # Gradients are averaged over processes, but the shares of the loss add up.
    learner.fabric.backward(share * learner.fabric.world_size)
    update(learner.model, learner.optimizer, learner.recipe)
    return float(total(share.detach()))


@torch.no_grad()
def evaluate(learner: Learner, split: str) -> float:
    """The recipe's metric on a split, in the units of the data."""
    score = Score(learner.recipe.metric, learner.outputs, learner.fabric.device)
    if learner.captures and len(learner.data.split(split)):
        score.update(*captured_predictions(learner, split))
        return score.compute()
    for graphs in _evaluation_batches(learner, split):
        batch = learner.batch(graphs)
        score.update(predict_batch(learner, batch), targets(learner, batch, split))
    return score.compute()


def targets(learner: Learner, batch: Any, split: str) -> Tensor:
    """y of a batch in a split; where nodes have splits of their own, those of another do not count."""
    y: Tensor = batch.y
    node_split = getattr(batch, "node_split", None)
    return y if node_split is None else only(y, node_split == SPLITS.index(split), learner.recipe.loss)


def predict_batch(learner: Learner, batch: Any) -> Tensor:
    """Predictions [M, T] in the units of the data."""
    learner.model.eval()
    return learner.predicted(batch)


def _evaluation_batches(learner: Learner, split: str) -> Any:
    fabric = learner.fabric
    return evaluation_batches(
        learner.data.split(split), learner.recipe.batch_size, fabric.global_rank, fabric.world_size
    )
