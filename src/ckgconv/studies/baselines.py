"""Baselines for nodes, from PyG's layers: GCN, GATv2, GraphSAGE, and an MLP that sees no edges.

    plain      h ← ReLU(layer(drop(h))), the last layer gives the outputs            as published for Cora
    residual   h ← h + drop(ReLU(layer(norm(h)))), between two linear maps           for deeper networks, many labels

Legend: N nodes, F feature columns, D width, T outputs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv, GCNConv, SAGEConv

from ckgconv.data import PackedDataset
from ckgconv.data.packed import SPLITS
from ckgconv.ops.dropout import dropout
from ckgconv.recipe import Recipe
from ckgconv.tasks.losses import LOSSES, mask_targets
from ckgconv.tasks.metrics import Score, better

HEADS = 8


class NoConvolution(nn.Linear):
    """W x + b, whatever the edges."""

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        return super().forward(x)


def attention(inputs: int, outputs: int) -> nn.Module:
    """GATv2 with eight heads side by side, or averaged where the outputs cannot be divided between them."""
    if outputs % HEADS:
        return GATv2Conv(inputs, outputs, HEADS, concat=False)
    return GATv2Conv(inputs, outputs // HEADS, HEADS)


LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "GCN": GCNConv,
    "GATv2": attention,
    "SAGE": SAGEConv,
    "MLP": NoConvolution,
}


@dataclass(frozen=True)
class Setting:
    """What all baselines of a graph share; Adam, its decay part of the gradient."""

    layers: int
    width: int
    residual: bool
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int


@dataclass(frozen=True)
class Fitted:
    """The outcome of a training, at its best validation epoch."""

    val: float
    test: float
    epoch: int
    parameters: int
    seconds: float


class Plain(nn.Module):
    """Layers with dropout before and ReLU between: x [N, F] → [N, T]."""

    def __init__(self, layer: Callable[[int, int], nn.Module], columns: int, outputs: int, setting: Setting) -> None:
        super().__init__()
        widths = [columns, *[setting.width] * (setting.layers - 1), outputs]
        self.dropout = setting.dropout
        self.layers = nn.ModuleList(map(layer, widths[:-1], widths[1:]))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        *hidden, last = self.layers
        for layer in hidden:
            x = F.relu(layer(dropout(x, self.dropout, self.training), edge_index))
        return last(dropout(x, self.dropout, self.training), edge_index)


class Residual(nn.Module):
    """Layers of one width, each added to what it reads: x [N, F] → [N, T]."""

    def __init__(self, layer: Callable[[int, int], nn.Module], columns: int, outputs: int, setting: Setting) -> None:
        super().__init__()
        width = setting.width
        self.dropout = setting.dropout
        self.first = nn.Linear(columns, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(setting.layers + 1))
        self.layers = nn.ModuleList(layer(width, width) for _ in range(setting.layers))
        self.last = nn.Linear(width, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = dropout(self.first(x), self.dropout, self.training)
        for norm, layer in zip(self.norms, self.layers, strict=False):
            h = h + dropout(F.relu(layer(norm(h), edge_index)), self.dropout, self.training)
        return self.last(self.norms[-1](h))


def fit_baseline(
    name: str, setting: Setting, data: PackedDataset, task: Recipe, seed: int, device: str = "cpu"
) -> Fitted:
    """Train a baseline on all nodes at once, for the task of a recipe; rows of features are divided by their sums."""
    outputs, loss, metric = task.model.head.outputs, task.training.loss, task.training.metric
    torch.manual_seed(seed)
    start = time.perf_counter()
    graph = data.batch(torch.arange(1)).to(device)
    graph.x = F.normalize(graph.x, p=1.0, dim=-1)
    network = (Residual if setting.residual else Plain)(LAYERS[name], graph.x.shape[1], outputs, setting).to(device)
    optimizer = torch.optim.Adam(network.parameters(), setting.learning_rate, weight_decay=setting.weight_decay)
    best: tuple[float, float, int] | None = None
    for epoch in range(setting.epochs):
        network.train()
        optimizer.zero_grad()
        LOSSES[loss](network(graph.x, graph.edge_index), of_split(graph, "train", loss)).backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            prediction = network(graph.x, graph.edge_index)
        val = score(prediction, of_split(graph, "val", loss), metric, outputs)
        if better(metric, val, None if best is None else best[0]):
            best = val, score(prediction, of_split(graph, "test", loss), metric, outputs), epoch
    assert best is not None
    parameters = sum(each.numel() for each in network.parameters())
    return Fitted(*best, parameters, round(time.perf_counter() - start, 1))


def of_split(graph: Data, split: str, loss: str) -> Tensor:
    """Targets, of which only those of a split count."""
    return mask_targets(graph.y, graph.node_split == SPLITS.index(split), loss)


def score(prediction: Tensor, target: Tensor, metric: str, outputs: int) -> float:
    """A metric of one prediction."""
    collected = Score(metric, outputs, prediction.device)
    collected.update(prediction, target)
    return collected.compute()
