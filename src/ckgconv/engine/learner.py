"""All that a training step touches: model, optimiser, data and targets, on one device."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.data import PackedDataset
from ckgconv.engine.optim import can_be_captured
from ckgconv.graphs import pack
from ckgconv.nn import CKGCN
from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import total
from ckgconv.pe import pairs_within
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import LOSSES, alone
from ckgconv.tasks.scaling import TargetScale

# Pairs that are encoded together where those of a whole data set are counted or stored: each takes some hundred bytes.
CHUNK = 2**21


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
    replays: dict[str, Any] = field(default_factory=dict)  # captured steps by name, and the source of their batches

    @property
    def captures(self) -> bool:
        """Whether steps run as CUDA graphs: one process on a GPU, float32 parameters, room for all pairs."""
        alone = self.fabric.world_size == 1 and dispatch.uses_triton(self.model.node_stem.norm.scale)
        alone = alone and can_be_captured(self.optimizer)
        encoding = self.model.encoding
        return alone and encoding.keeps_edges and (encoding.walks_whole_graphs or self._pairs_fit())

    def _pairs_fit(self) -> bool:
        """Whether the data lives on the device, and its pairs take less than a quarter of it."""
        if not self.data.node_ptr.is_cuda:
            return False
        room = torch.cuda.get_device_properties(self.fabric.device).total_memory // 4
        room //= self.model.encoding.channels * 4 + 12
        # At most n² a graph; where that is too many, those within reach are counted.
        return self.most_pairs < room or self.stored_pairs < room

    @property
    def most_pairs(self) -> int:
        """All pairs of all graphs."""
        return int(self.data.node_ptr.diff().square().sum())

    @cached_property
    def stored_pairs(self) -> int:
        """Pairs of all graphs that the support stores."""
        if not self.model.encoding.stores_some:
            return self.most_pairs
        return sum(self._within_reach(chunk) for chunk in self.chunks())

    def chunks(self) -> tuple[Tensor, ...]:
        """Numbers of all graphs, in order, in parts that can be encoded together, each padded to the largest."""
        largest = int(self.data.node_ptr.diff().max())
        graphs = torch.arange(self.data.num_graphs, device=self.data.node_ptr.device)
        return graphs.split(max(1, CHUNK // largest**2))

    def _within_reach(self, graphs: Tensor) -> int:
        batch = self.data.batch(graphs)
        packed = pack(batch.edge_index, batch.batch, num_nodes=batch.num_nodes)
        return pairs_within(packed, self.model.encoding.reach)[0].shape[0]

    @cached_property
    def unit(self) -> Tensor:
        """With which the backward pass of a captured step begins: otherwise each would fill one."""
        return torch.ones((), device=self.fabric.device)

    @property
    def outputs(self) -> int:
        return self.model.recipe.head.outputs

    def batch(self, graphs: Tensor, data: PackedDataset | None = None) -> Data:
        """Graphs of the learner's data or of other `data`, floating values in the precision of the parameters."""
        dtype = self.model.node_stem.norm.scale.dtype
        source = data or self.data
        batch = source.batch(graphs.to(source.node_ptr.device)).to(self.fabric.device)
        return batch.apply(lambda value: value.to(dtype) if value.is_floating_point() else value)

    def forward(self, batch: Any) -> Tensor:
        """Predictions in training; as Fabric runs the model only where processes share it, since it rounds outputs."""
        with self.fabric.autocast():
            prediction: Tensor = self.wrapped(batch) if self.fabric.world_size > 1 else self.model(batch)
        return prediction

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """This process's share of the loss of a batch."""
        target = self.scale.shrink(target) if self.recipe.scale_targets else target
        summing = total if self.fabric.world_size > 1 else alone
        return LOSSES[self.recipe.loss].of(self.recipe)(prediction.to(wide(prediction)), target, summing)

    def predicted(self, batch: Any) -> Tensor:
        """Predictions [M, T] in the units of the data; the model must be in evaluation mode.

        Kernels are not rounded to bfloat16, even where training does so: that moved the test MAE of the full ZINC run
        from 0.0590 to 0.0598. Products may still use tf32.
        """
        with torch.no_grad():
            prediction = self.model(batch)
        prediction = prediction.to(wide(prediction))
        return self.scale.restore(prediction) if self.recipe.scale_targets else prediction


def wide(prediction: Tensor) -> torch.dtype:
    """Losses and metrics are taken in float32 at least."""
    return torch.float64 if prediction.dtype == torch.float64 else torch.float32
