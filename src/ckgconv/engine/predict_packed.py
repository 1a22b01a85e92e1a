"""Predictions for all graphs of a packed data set, or for all their nodes, whatever their split."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ckgconv.checks import check_instance
from ckgconv.data import PackedDataset
from ckgconv.engine.layerwise import node_states, predictions
from ckgconv.engine.predict_molecules import MOST_PAIRS, Tick, no_tick, output_and_embeddings
from ckgconv.engine.run import Run
from ckgconv.engine.sampling import graph_of, sampled
from ckgconv.engine.window import fits

# Graphs of a batch on a GPU, which a training batch does not fill; on a CPU larger batches are not faster.
GRAPHS_ON_A_GPU = 2048


@dataclass(frozen=True)
class PackedPredictions:
    """One row per graph, or per node where the network does not pool; M rows, T outputs, D width."""

    graph: Tensor  # [M] int64 number of the graph
    node: Tensor | None  # [M] int64 number of the node within its graph
    values: Tensor  # [M, T] in the units of the data, or probabilities of classes or labels
    classes: Tensor | None  # [M] int64 the most probable class; None in regression and for labels
    embeddings: Tensor  # [M, D] what the head reads


def predict_packed(run: Run, data: PackedDataset, tick: Tick = no_tick) -> PackedPredictions:
    """Predict all graphs of a data set with a trained network; `tick` is called with the graphs of each batch done."""
    check_instance("The run", run, Run, "what open_run or train returned")
    check_instance("data", data, PackedDataset, "a PackedDataset, as ckgconv.data.from_pyg makes one")
    if sampled(run.learner):
        return _predict_large(run, data, tick)
    device = run.learner.fabric.device
    data = data.to(device)
    per_node = run.model.predicts_nodes
    owners, found, embeddings = [], [], []
    for graphs in graph_batches(data, graphs_at_once(run)):
        batch = run.learner.batch(graphs, data)
        predicted, embedded = output_and_embeddings(run, batch)
        found.append(predicted.cpu())
        embeddings.append(embedded.cpu())
        owners.append((graphs[batch.batch] if per_node else graphs).cpu())
        tick(len(graphs))
    graph = torch.cat(owners)
    node = _number_in_graph(data, graph) if per_node else None
    values, classes = run.learner.task.loss.outcome(torch.cat(found))
    return PackedPredictions(graph, node, values, classes, torch.cat(embeddings))


def graphs_at_once(run: Run) -> int:
    """Most graphs of a batch."""
    size = run.recipe.training.batch_size
    return max(size, GRAPHS_ON_A_GPU) if run.learner.fabric.device.type == "cuda" else size


def graph_batches(data: PackedDataset, size: int) -> Iterator[Tensor]:
    """All graphs in order, at most `size` and `MOST_PAIRS` pairs of nodes at a time; a larger graph is a batch.

    A data set without graphs is one batch, so that predictions have a shape.
    """
    pairs = (data.node_ptr.diff() ** 2).tolist()
    first = held = 0
    for graph, own in enumerate(pairs):
        if graph > first and (graph - first == size or held + own > MOST_PAIRS):
            yield torch.arange(first, graph, device=data.x.device)
            first, held = graph, 0
        held += own
    yield torch.arange(first, len(pairs), device=data.x.device)


def _predict_large(run: Run, data: PackedDataset, tick: Tick) -> PackedPredictions:
    """All nodes of all graphs, layer by layer, by a network that was trained on samples."""
    learner = run.learner
    learner.model.eval()
    data = data.to(learner.fabric.device) if fits(data, learner.fabric.device) else data
    embeddings = node_states(learner, graph_of(learner, data), torch.arange(len(data.x), device=data.x.device))
    values, classes = run.learner.task.loss.outcome(predictions(learner, embeddings).cpu())
    graph = torch.arange(data.num_graphs).repeat_interleave(data.node_ptr.cpu().diff())
    tick(data.num_graphs)
    return PackedPredictions(graph, _number_in_graph(data, graph), values, classes, embeddings.float().cpu())


def _number_in_graph(data: PackedDataset, graph: Tensor) -> Tensor:
    """[N] number of each node within its graph, given the graph of each node of the data set."""
    return torch.arange(len(graph)) - data.node_ptr.cpu()[graph]
