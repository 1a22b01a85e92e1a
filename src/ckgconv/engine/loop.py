"""Training and evaluation of one network on one packed data set."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.data.packed import SPLITS, PackedDataset
from ckgconv.engine.batches import evaluation_batches, training_batches
from ckgconv.engine.optim import clip_gradients, learning_rate
from ckgconv.nn import CKGCN
from ckgconv.ops.total import total
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import LOSSES, only
from ckgconv.tasks.metrics import Score
from ckgconv.tasks.scaling import TargetScale


@dataclass
class Learner:
    """All that a step touches."""

    fabric: Fabric
    model: CKGCN
    wrapped: Any  # the same model as Fabric runs it: precision and data parallelism
    optimizer: Any
    data: PackedDataset
    scale: TargetScale
    recipe: TrainingRecipe

    @property
    def outputs(self) -> int:
        return self.model.recipe.head.outputs

    def batch(self, graphs: Tensor, data: PackedDataset | None = None) -> Data:
        """Graphs of the learner's data or of other `data`, floating values in the precision of the parameters."""
        dtype = self.model.node_stem.norm.scale.dtype
        batch = (data or self.data).batch(graphs)
        return batch.apply(lambda value: value.to(dtype) if value.is_floating_point() else value)


def train_epoch(learner: Learner, epoch: int, tick: Callable[[int, float], None]) -> dict[str, Any]:
    """One pass over the training graphs; `tick` hears of the graphs and the loss of each step."""
    start = time.perf_counter()
    rate = learning_rate(epoch, learner.recipe)
    for group in learner.optimizer.param_groups:
        group["lr"] = rate
    learner.wrapped.train()
    fabric = learner.fabric
    summed, seen = 0.0, 0
    batches = training_batches(learner.data.train, learner.recipe.batch_size, fabric.global_rank, fabric.world_size)
    for graphs in batches:
        loss = training_step(learner, graphs)
        summed += loss * graphs.shape[0]
        seen += graphs.shape[0]
        tick(graphs.shape[0], loss)
    return {"epoch": epoch, "train_loss": summed / max(seen, 1), "lr": rate, "seconds": time.perf_counter() - start}


def training_step(learner: Learner, graphs: Tensor) -> float:
    """Forward, backward, clipping, update; returns the loss of the whole batch."""
    batch = learner.batch(graphs)
    learner.optimizer.zero_grad()
    prediction = learner.wrapped(batch)
    target = targets(learner, batch, "train")
    target = learner.scale.shrink(target) if learner.recipe.scale_targets else target
    share = LOSSES[learner.recipe.loss](prediction.to(_wide(prediction)), target, total)
    # Gradients are averaged over processes, but the shares of the loss add up.
    learner.fabric.backward(share * learner.fabric.world_size)
    clip_gradients(learner.model, learner.recipe)
    learner.optimizer.step()
    return float(total(share.detach()))


@torch.no_grad()
def evaluate(learner: Learner, split: str) -> float:
    """The recipe's metric on a split, in the units of the data."""
    score = Score(learner.recipe.metric, learner.outputs, learner.fabric.device)
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
    with torch.no_grad(), learner.fabric.autocast():
        prediction = learner.model(batch)
    prediction = prediction.to(_wide(prediction))
    return learner.scale.restore(prediction) if learner.recipe.scale_targets else prediction


def _evaluation_batches(learner: Learner, split: str) -> Any:
    fabric = learner.fabric
    return evaluation_batches(
        learner.data.split(split), learner.recipe.batch_size, fabric.global_rank, fabric.world_size
    )


def _wide(prediction: Tensor) -> torch.dtype:
    """Losses and metrics are taken in float32 at least."""
    return torch.float64 if prediction.dtype == torch.float64 else torch.float32
