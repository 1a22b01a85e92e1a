"""Trains a module with its own loss, metric and callback; test_parallel.py runs it in one process and in two."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_data import small_dataset
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import global_add_pool

from ckgconv import OwnMetric, recipe, train


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(21, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, data):
        return self.head(global_add_pool(self.embedding(data.x[:, 0]).tanh(), data.batch))


class LastStops:
    """Only the last process stops."""

    def on_epoch(self, run, epoch):
        fabric = run.learner.fabric
        return epoch.epoch == 1 and fabric.global_rank == fabric.world_size - 1


def worst(prediction, target):
    return (prediction - target).abs().max()


chosen = recipe("zinc")
chosen = replace(chosen, training=replace(chosen.training, epochs=4, warmup_epochs=0, batch_size=5))
data = small_dataset(chosen, graphs=42)
y = data.y.clone()
y[data.train[:3]] = float("nan")
run = train(
    chosen,
    data=replace(data, y=y),
    folder=Path(sys.argv[1]),
    device="cpu",
    precision="64",
    model=Network,
    loss=F.l1_loss,
    metric=OwnMetric(worst, higher_is_better=False),
    callbacks=[LastStops()],
)
assert len(run.record.epochs) == 2
