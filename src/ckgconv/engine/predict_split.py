"""Predictions of a run for a split of its own data, row by row next to their targets.

Rows are those of y that count in the split, ascending, whether the network reads whole graphs, captured or not, or one
large graph layer by layer: rows of different networks are the same rows. Of several processes each computes all rows.

Legend: G graphs, M rows (graphs or nodes), T outputs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ckgconv.data.packed import ragged, widened
from ckgconv.engine.batches import evaluation_batches
from ckgconv.engine.epoch import captured_predictions, predict_batch
from ckgconv.engine.layerwise import node_states, predictions
from ckgconv.engine.learner import Learner
from ckgconv.engine.prepared import prepare
from ckgconv.engine.sampling import own_graph, sampled


@dataclass(frozen=True)
class SplitPredictions:
    """What a network returns for the rows of a split, in host memory."""

    prediction: Tensor  # [M, T] values in the units of the data, or logits
    target: Tensor  # [M] or [M, T]


@torch.no_grad()
def predict_split(learner: Learner, split: str) -> SplitPredictions:
    """Predictions and targets of "train", "val" or "test"."""
    data = learner.data
    rows = data.target_rows(split).sort().values
    learner.model.eval()
    if sampled(learner):
        found = predictions(learner, node_states(learner, own_graph(learner), rows))
    else:
        found = _of_whole_graphs(learner, data.split(split), split)[_places(learner, split, rows)]
    assert data.y is not None
    return SplitPredictions(found.cpu(), widened(data.y[rows]).cpu())


def _of_whole_graphs(learner: Learner, graphs: Tensor, split: str) -> Tensor:
    """[·, T] for the graphs [G] in their order, or for all their nodes."""
    if not len(graphs):
        return torch.zeros(0, learner.model.outputs, device=learner.fabric.device)
    if learner.captures:
        return captured_predictions(learner, split)[0]
    batches = evaluation_batches(graphs, learner.recipe.batch_size, rank=0, world=1)
    return torch.cat([predict_batch(learner, prepare(learner, batch).batch) for batch in batches])


def _places(learner: Learner, split: str, rows: Tensor) -> Tensor:
    """[M] where each row of y is among the graphs of a split, or among their nodes."""
    data = learner.data
    graphs = data.split(split)
    present = ragged(data.node_ptr, graphs)[0] if data.node_targets else graphs
    ascending = present.sort()
    return ascending.indices[torch.searchsorted(ascending.values, rows)].to(learner.fabric.device)
