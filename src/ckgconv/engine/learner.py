"""All that a training step touches: model, optimiser, data and targets, on one device."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.backends.cuda.schedule import IN_ORDER, InOrder, ScheduledModel
from ckgconv.data import PackedDataset
from ckgconv.engine.optim import can_be_captured
from ckgconv.graphs import GraphBatch, pack
from ckgconv.nn.graph_model import GraphModel
from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import all_reduce
from ckgconv.pe import pairs_within
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import LOSSES, one_process
from ckgconv.tasks.scaling import TargetScale

# Pairs that are encoded at a time where those of a whole data set are counted or stored: each takes some hundred bytes.
CHUNK = 2**21


@dataclass
class Learner:
    """All that a step touches."""

    fabric: Fabric
    model: GraphModel  # accelerated for the device
    wrapped: Any  # the same model as Fabric runs it: precision and data parallelism
    optimizer: Any
    data: PackedDataset
    scale: TargetScale
    recipe: TrainingRecipe
    replays: dict[str, Any] = field(default_factory=dict)  # captured steps by name, and the source of their batches

    @property
    def captures(self) -> bool:
        """Whether steps run as CUDA graphs: one process on a GPU, float32 parameters, memory for all pairs."""
        parameter, encoding = next(self.model.parameters()), self.model.encoding
        runs = self.model.static and self.fabric.world_size == 1 and dispatch.uses_triton(parameter)
        runs = runs and can_be_captured(self.optimizer)
        return runs and encoding.keeps_edges and (encoding.walks_whole_graphs or self._pairs_fit())

    def _pairs_fit(self) -> bool:
        """Whether the data lives on the device, and its pairs take less than a quarter of it."""
        if not self.data.node_ptr.is_cuda:
            return False
        budget = torch.cuda.get_device_properties(self.fabric.device).total_memory // 4
        budget //= self.model.encoding.channels * 4 + 12
        # At most n² a graph; where that is too many, those within reach are counted.
        return self.most_pairs < budget or self.stored_pairs < budget

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
        """Numbers of all graphs, in order, in parts that can be encoded at a time, each padded to the largest."""
        largest = int(self.data.node_ptr.diff().max())
        graphs = torch.arange(self.data.num_graphs, device=self.data.node_ptr.device)
        return graphs.split(max(1, CHUNK // largest**2))

    def _within_reach(self, graphs: Tensor) -> int:
        batch = self.data.batch(graphs)
        packed = pack(batch.edge_index, batch.batch, num_nodes=batch.num_nodes)
        return pairs_within(packed, self.model.encoding.reach)[0].shape[0]

    @cached_property
    def loss_gradient(self) -> Tensor:
        """1, with which a backward pass begins: a captured step would otherwise fill one each time."""
        return torch.ones((), device=self.fabric.device)

    def batch(self, graphs: Tensor, data: PackedDataset | None = None) -> Data:
        """Graphs of the learner's data or of other `data`, floating values in the precision of the parameters."""
        dtype = self.model.dtype
        source = data or self.data
        batch = source.batch(graphs.to(source.node_ptr.device)).to(self.fabric.device)
        return batch.apply(lambda value: value.to(dtype) if value.is_floating_point() else value)

    def forward(self, batch: GraphBatch, schedule: InOrder = IN_ORDER) -> Tensor:
        """Predictions in training; through Fabric only where processes share the model, since it rounds outputs."""
        with self.fabric.autocast():
            prediction: Tensor = self.wrapped(batch) if self.fabric.world_size > 1 else self._run(batch, schedule)
        return prediction

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """This process's share of the loss of a batch."""
        target = self.scale.shrink(target) if self.recipe.scale_targets else target
        summing = all_reduce if self.fabric.world_size > 1 else one_process
        return LOSSES[self.recipe.loss].of(self.recipe)(prediction.to(wide(prediction)), target, summing)

    def backward(self, loss: Tensor) -> None:
        """Gradients of the loss of the whole batch: they are averaged over processes, but shares of the loss add up."""
        share = loss if self.fabric.world_size == 1 else loss * self.fabric.world_size
        self.fabric.backward(share, self.loss_gradient.to(share.dtype))

    def predicted(self, batch: Data | GraphBatch, schedule: InOrder = IN_ORDER) -> Tensor:
        """Predictions [M, T] in the units of the data; the model must be in evaluation mode.

        Kernels are not rounded to bfloat16, even where training does so: that moved the test MAE of the full ZINC run
        from 0.0590 to 0.0598. Products may still use tf32.
        """
        with torch.no_grad():
            prediction = self._run(batch, schedule)
        prediction = prediction.to(wide(prediction))
        return self.scale.restore(prediction) if self.recipe.scale_targets else prediction

    def _run(self, batch: Data | GraphBatch, schedule: InOrder) -> Tensor:
        if isinstance(self.model, ScheduledModel):
            return self.model(batch, schedule)
        # A model that knows no schedule leaves it to the device what runs beside it.
        schedule.start_prefetch()
        return self.model(batch)


def wide(prediction: Tensor) -> torch.dtype:
    """Losses and metrics are taken in float32 at least."""
    return torch.float64 if prediction.dtype == torch.float64 else torch.float32
