"""Batches of static capacity from a learner's data: inputs and targets of a step that can be captured."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ckgconv.data.packed import SPLITS
from ckgconv.engine.learner import Learner
from ckgconv.graphs import GraphBatch
from ckgconv.pairs.padded import Capacity, padded_batch
from ckgconv.tasks.losses import only


@dataclass(frozen=True)
class Sizes:
    """Nodes and edges of every graph of a data set, on the host: shapes must be known before a batch is made."""

    nodes: Tensor  # [G]
    edges: Tensor  # [G]

    def needed(self, batches: Tensor) -> Capacity:
        """The capacity for batches [S, B] of graph numbers, -1 for none; one row of each kind is always padding."""
        graph, there = batches.clamp(min=0), batches >= 0
        nodes, edges = self.nodes[graph] * there, self.edges[graph] * there
        return Capacity(
            graphs=batches.shape[1],
            nodes=int(nodes.sum(1).max()) + 1,
            pairs=int((nodes**2).sum(1).max()) + 1,
            edges=int(edges.sum(1).max()) + 1,
            largest=int(self.nodes.max()),
        )


def sizes_of(learner: Learner) -> Sizes:
    """Sizes of a learner's graphs."""
    return Sizes(learner.data.node_ptr.diff().cpu(), learner.data.edge_ptr.diff().cpu())


@dataclass(frozen=True)
class Sample:
    """What a step reads."""

    batch: GraphBatch
    target: Tensor


def sample(learner: Learner, numbers: Tensor, capacity: Capacity, split: str) -> Sample:
    """Inputs and targets of the graphs of the given numbers [B]; targets of padding do not count."""
    model, data = learner.model, learner.data
    dtype = model.node_stem.norm.scale.dtype
    batch, nodes = padded_batch(data, numbers, capacity, model.encoding, dtype)
    if model.recipe.position_channels:
        assert batch.position is not None
        batch = replace(batch, node_features=torch.cat([batch.node_features, batch.position], dim=-1))
    else:
        batch = replace(batch, position=None)
    assert data.y is not None
    if data.node_targets:
        counts = nodes.real
        if data.node_split is not None:
            counts = counts & (data.node_split[nodes.index] == SPLITS.index(split))
        y = data.y[nodes.index]
    else:
        counts, y = numbers >= 0, data.y[numbers.clamp(min=0)]
    y = y.to(dtype) if y.is_floating_point() else y.long()
    return Sample(batch, only(y, counts, learner.recipe.loss))
