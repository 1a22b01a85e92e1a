"""Predictions for all graphs of a packed data set, or for all their nodes, whatever their split."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ckgconv.data import PackedDataset
from ckgconv.engine.epoch import predict_batch
from ckgconv.engine.predict import embed
from ckgconv.engine.run import Run
from ckgconv.tasks.losses import LOSSES


@dataclass(frozen=True)
class PackedPredictions:
    """One row per graph, or per node where the network does not pool; M rows, T outputs, D width."""

    graph: Tensor  # [M] int64 number of the graph
    node: Tensor | None  # [M] int64 number of the node within its graph
    values: Tensor  # [M, T] in the units of the data, or probabilities of classes or labels
    classes: Tensor | None  # [M] int64 the most probable class; None in regression and for labels
    embeddings: Tensor  # [M, D] what the head reads


def predict_packed(
    run: Run, data: PackedDataset, tick: Callable[[int], None] = lambda count: None
) -> PackedPredictions:
    """Predict all graphs of a data set with a trained network; `tick` is called with the graphs of each batch done."""
    device = run.learner.fabric.device
    data = data.to(device)
    per_node = run.model.predicts_nodes
    owners, predictions, embeddings = [], [], []
    for graphs in torch.arange(data.num_graphs, device=device).split(run.recipe.training.batch_size):
        batch = run.learner.batch(graphs, data)
        predictions.append(predict_batch(run.learner, batch).cpu())
        embeddings.append(embed(run, batch).cpu())
        owners.append((graphs[batch.batch] if per_node else graphs).cpu())
        tick(len(graphs))
    graph, prediction = torch.cat(owners), torch.cat(predictions)
    node = torch.arange(len(graph)) - data.node_ptr.cpu()[graph] if per_node else None
    values, classes = LOSSES[run.recipe.training.loss].outcome(prediction)
    return PackedPredictions(graph, node, values, classes, torch.cat(embeddings))
