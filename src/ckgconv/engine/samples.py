"""Inputs and targets of a step from a learner's data: unpadded for eager steps, padded to a static capacity for
captured ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ckgconv.backends.cuda.assembly import Capacity
from ckgconv.backends.cuda.batch import AssembledModel, StoredCoordinates, StoredPairs, padded_batch, store_pairs
from ckgconv.backends.cuda.streams import IN_ORDER, Streams
from ckgconv.data.packed import SPLITS, PackedDataset
from ckgconv.engine.learner import Learner
from ckgconv.engine.prepared import Prepared, prepare, prepared_once
from ckgconv.engine.window import Window
from ckgconv.graphs import GraphBatch, LayeredBatch
from ckgconv.tasks.losses import mask_targets


@dataclass(frozen=True)
class Sample:
    """Input and targets of a step."""

    batch: GraphBatch | LayeredBatch
    target: Tensor  # of each graph or node; one that does not count is NaN or class -1
    weight: Tensor | None = None  # [B] of each graph in the loss, where graphs have weights


def eager_sample(learner: Learner, graphs: Tensor, split: str) -> Sample:
    """The graphs of the given numbers [B], unpadded, with their targets in a split."""
    # Graphs that meet in an order of their own each epoch hardly ever form the same batch again.
    prepared = prepared_once(learner, graphs) if graphs.shape[0] == 1 else prepare(learner, graphs)
    return Sample(prepared.batch, targets(learner, prepared, split), prepared.weight)


def targets(learner: Learner, batch: Prepared, split: str) -> Tensor:
    """y of a batch in a split; where nodes have splits of their own, nodes of other splits do not count."""
    y, node_split = batch.y, batch.node_split
    return y if node_split is None else mask_targets(y, node_split == SPLITS.index(split), learner.recipe.loss)


@dataclass(frozen=True)
class Sizes:
    """Nodes, edges and pairs of every graph of a data set, on the host, where the shapes of a capture are chosen."""

    nodes: Tensor  # [G]
    edges: Tensor  # [G]
    pairs: Tensor  # [G]

    def needed(self, batches: Tensor) -> Capacity:
        """The capacity for batches [S, B] of graph numbers, -1 for none; one row of each kind is always padding."""
        graph, present = batches.clamp(min=0), batches >= 0

        def largest(counts: Tensor) -> int:
            return int((counts[graph] * present).sum(1).max()) + 1

        return Capacity(
            graphs=batches.shape[1],
            nodes=largest(self.nodes),
            pairs=largest(self.pairs),
            edges=largest(self.edges),
            largest=int(self.nodes.max()),
        )


@dataclass(frozen=True)
class Source:
    """Where the batches of a learner come from."""

    learner: Learner
    stored: StoredPairs | StoredCoordinates | None  # of every graph; None: each batch has its walks computed
    sizes: Sizes

    def window(self, capacity: Capacity) -> Window | None:
        """The window for batches of a data set in host memory; None where the data set is on the device."""
        device, data = self.learner.fabric.device, self.learner.data
        return None if data.node_ptr.device.type == device.type else Window(data, capacity, device)

    def sample(
        self, data: PackedDataset, numbers: Tensor, capacity: Capacity, split: str, streams: Streams = IN_ORDER
    ) -> Sample:
        """The graphs of `data` with the given numbers [B], -1 for none, padded; targets of padding do not count."""
        model = self.learner.model
        dtype = model.dtype
        batch, nodes = padded_batch(data, self.stored, numbers, capacity, model.encoding, dtype, streams)
        if model.recipe.position_channels:
            assert batch.position is not None
            batch = replace(batch, node_features=torch.cat([batch.node_features, batch.position], dim=-1))
        else:
            batch = replace(batch, position=None)
        if model.recipe.graph_features:
            batch = replace(batch, graph_features=_features_of(data, numbers).to(dtype))
        if isinstance(model, AssembledModel):
            batch = model.assembled(batch)
        assert data.y is not None
        if data.node_targets:
            counts, y = nodes.real, data.y[nodes.row]
            if data.node_split is not None:
                counts = counts & (data.node_split[nodes.row] == SPLITS.index(split))
        else:
            counts, y = numbers >= 0, data.y[numbers.clamp(min=0)]
        y = y.to(dtype) if y.is_floating_point() else y.long()
        weight = None if data.target_weight is None else data.target_weight[numbers.clamp(min=0)].to(dtype)
        return Sample(batch, mask_targets(y, counts, self.learner.recipe.loss), weight)


def _features_of(data: PackedDataset, numbers: Tensor) -> Tensor:
    """[B, C] of the graphs of the given numbers; unknown for -1."""
    assert data.graph_features is not None
    return data.graph_features[numbers.clamp(min=0)].where((numbers >= 0).unsqueeze(-1), torch.nan)


def source_of(learner: Learner) -> Source:
    """The source of a learner's batches; pairs that cannot be computed in fixed shapes are stored here, once."""
    nodes, edges = learner.data.node_ptr.diff().cpu(), learner.data.edge_ptr.diff().cpu()
    if learner.computes_walks_in_steps:
        return Source(learner, None, Sizes(nodes, edges, nodes**2))
    stored = store_pairs(_eager_batches(learner))
    return Source(learner, stored, Sizes(nodes, edges, stored.pair_ptr.diff().cpu()))


@torch.no_grad()
def _eager_batches(learner: Learner) -> Iterator[GraphBatch]:
    for chunk in learner.chunks():
        yield learner.model.prepare(learner.batch(chunk))
