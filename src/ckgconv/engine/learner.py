"""The learner: what a step reads and changes, on one device: model, optimiser, data and scale of the targets."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from lightning.fabric import Fabric
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.backends.cuda.streams import IN_ORDER, StreamedModel, Streams
from ckgconv.backends.cuda.supports import MOST_NODES
from ckgconv.data import PackedDataset
from ckgconv.engine.norm_statistics import BatchStatistics
from ckgconv.engine.optimizers import can_be_captured
from ckgconv.engine.schedule import Schedule
from ckgconv.engine.weight_average import WeightAverage
from ckgconv.graphs import GraphBatch, LayeredBatch, OpaqueBatch, pack
from ckgconv.nn.graph_model import GraphModel
from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import all_reduce
from ckgconv.ops.precision import exact_products
from ckgconv.pe import pairs_within
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.consistency import consistency
from ckgconv.tasks.scaling import TargetScale
from ckgconv.tasks.task import Task, one_process
from ckgconv.tasks.weights import UNWEIGHTED, TargetWeights

if TYPE_CHECKING:
    from ckgconv.engine.large_graph import LargeGraph
    from ckgconv.engine.prepared import PreparedBatches
    from ckgconv.engine.replay import Replay
    from ckgconv.engine.samples import Source
    from ckgconv.engine.sampling import Division

# Pairs encoded at a time when all pairs of a data set are counted or stored; each takes some hundred bytes.
CHUNK = 2**21


def _nothing(sentence: str) -> None: ...


@dataclass
class DataCache:
    """What depends on the data of a learner alone: each is computed when it is first needed, then kept."""

    batches: "PreparedBatches | None" = None  # those that come again
    graph: "LargeGraph | None" = None  # all graphs as one, where steps read samples of it
    division: "Division | None" = None  # of that graph, where a sample is some of its parts
    training_nodes: Tensor | None = None  # [N] which of its nodes are for training


@dataclass
class Learner:
    """A model in training, with the data of its run."""

    fabric: Fabric
    model: GraphModel  # accelerated for the device
    wrapped: Any  # the same model as Fabric runs it: precision and data parallelism
    optimizer: Any
    data: PackedDataset
    scale: TargetScale
    recipe: TrainingRecipe
    task: Task
    schedule: Schedule
    weights: TargetWeights = UNWEIGHTED
    average: WeightAverage | None = None  # of the weights, where the recipe asks for one
    statistics: BatchStatistics | None = None  # of batches, where the recipe asks for their median
    tell: Callable[[str], None] = _nothing  # receives a sentence about what takes a while, such as compiling
    watched: bool = False  # whether something must be called after every step
    replays: dict[str, "Replay"] = field(default_factory=dict)  # captured steps by name
    source: "Source | None" = None  # of the batches of captured steps, once there is one
    cache: DataCache = field(default_factory=DataCache)

    @property
    def captures(self) -> bool:
        """Whether steps run as CUDA graphs.

        That takes one process on a GPU with Triton, float32 parameters, a model and a loss of static shapes, one draw
        of dropout, an optimiser that can be captured, whole graphs of at most `MOST_NODES` nodes, a support that keeps
        every edge, memory for all pairs where they must be stored, and no callback that is called after every step.
        """
        machine = self.fabric.world_size == 1 and dispatch.uses_triton(next(self.model.parameters()))
        training = can_be_captured(self.optimizer) and self.task.loss.static and not self.watched
        training = training and self.recipe.sampling.kind == "none" and self.recipe.draws == 1
        if not (machine and self.model.static and training):
            return False
        graphs_fit = self.largest_graph <= MOST_NODES and self.keeps_edges
        return graphs_fit and (self.computes_walks_in_steps or self._pairs_fit())

    @property
    def computes_walks_in_steps(self) -> bool:
        """Whether a captured step computes the walks of its batch; those of weighted edges are computed once."""
        return self.model.encoding.has_fixed_shapes and self.data.edge_weight is None

    @cached_property
    def keeps_edges(self) -> bool:
        """Whether every edge lies inside the support; an edge of weight zero leads nowhere within hops."""
        encoding, weight = self.model.encoding, self.data.edge_weight
        counts_hops = isinstance(encoding.support, int)
        return encoding.keeps_edges and (weight is None or not counts_hops or bool((weight > 0).all()))

    @property
    def largest_graph(self) -> int:
        """Nodes of the largest graph."""
        return int(self.data.node_ptr.diff().max()) if self.data.num_graphs else 0

    def _pairs_fit(self) -> bool:
        """Whether the data lies on the device, and its pairs take less than a quarter of the device's memory."""
        if not self.data.node_ptr.is_cuda:
            return False
        budget = torch.cuda.get_device_properties(self.fabric.device).total_memory // 4
        budget //= self.model.encoding.channels * 4 + 12
        # Counting the stored pairs takes a search, so Σ n², which bounds them, is compared first.
        return self.all_pairs < budget or self.stored_pairs < budget

    @property
    def all_pairs(self) -> int:
        """Σ n² over all graphs."""
        return int(self.data.node_ptr.diff().square().sum())

    @cached_property
    def stored_pairs(self) -> int:
        """Pairs of all graphs that the support stores."""
        if not self.model.encoding.stores_near_pairs:
            return self.all_pairs
        return sum(self._within_reach(chunk) for chunk in self.chunks())

    def chunks(self) -> tuple[Tensor, ...]:
        """Numbers of all graphs, in order, in parts small enough to encode as dense matrices of the largest graph."""
        largest = self.largest_graph
        graphs = torch.arange(self.data.num_graphs, device=self.data.node_ptr.device)
        return graphs.split(max(1, CHUNK // largest**2))

    def _within_reach(self, graphs: Tensor) -> int:
        batch = self.data.batch(graphs)
        packed = pack(batch.edge_index, batch.batch, batch.edge_weight, batch.num_nodes, self.model.encoding.flow)
        return pairs_within(packed, self.model.encoding.reach)[0].shape[0]

    @cached_property
    def loss_gradient(self) -> Tensor:
        """∂loss/∂loss = 1, where a backward pass begins: otherwise a captured step would fill a tensor every time."""
        return torch.ones((), device=self.fabric.device)

    def batch(self, graphs: Tensor, data: PackedDataset | None = None) -> Data:
        """Graphs of the learner's data or of other `data`, floating values in the precision of the parameters."""
        dtype = self.model.dtype
        source = data or self.data
        batch = source.batch(graphs.to(source.node_ptr.device)).to(self.fabric.device)
        return batch.apply(lambda value: value.to(dtype) if value.is_floating_point() else value)

    def forward(self, batch: GraphBatch | LayeredBatch, streams: Streams = IN_ORDER) -> Tensor:
        """Predictions in training; through Fabric only with several processes, since Fabric rounds the outputs."""
        several = self.fabric.world_size > 1
        with self.fabric.autocast():
            prediction: Tensor = self.wrapped(OpaqueBatch(batch)) if several else self._run(batch, streams)
        return prediction

    def objective(
        self,
        batch: GraphBatch | LayeredBatch,
        target: Tensor,
        streams: Streams = IN_ORDER,
        weight: Tensor | None = None,
    ) -> Tensor:
        """What a step minimises: this process's share of the loss, of all draws, and of their consistency."""
        recipe = self.recipe
        draws = [self.forward(batch, streams) for _ in range(recipe.draws)]
        loss = self.loss(draws[0], target, weight)
        if recipe.draws > 1:
            loss = torch.stack([loss, *(self.loss(draw, target, weight) for draw in draws[1:])]).mean()
        if recipe.consistency:
            total = all_reduce if self.fabric.world_size > 1 else one_process
            logits = [draw.to(loss_dtype(draw)) for draw in draws]
            loss = loss + recipe.consistency * consistency(logits, recipe.sharpening, total)
        return loss

    def loss(self, prediction: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """This process's share of the loss of a batch, whose graphs may have weights [B]."""
        weight = self.weights.of(target, weight)
        target = self.scale.standardise(target) if self.recipe.scale_targets else target
        total = all_reduce if self.fabric.world_size > 1 else one_process
        return self.task.loss.of(self.recipe)(prediction.to(loss_dtype(prediction)), target, total, weight)

    def backward(self, loss: Tensor) -> None:
        """Gradients of the loss of the whole batch: processes average their gradients, but their losses add up."""
        share = loss if self.fabric.world_size == 1 else loss * self.fabric.world_size
        self.fabric.backward(share, self.loss_gradient.to(share.dtype))

    def averaged(self) -> AbstractContextManager[None]:
        """A context in which the model has the averaged weights; where there is no average, its own."""
        return nullcontext() if self.average is None else self.average.in_place()

    def predicted(self, batch: Data | GraphBatch, streams: Streams = IN_ORDER) -> Tensor:
        """Predictions [M, T] in the units of the data; the model must be in evaluation mode.

        In float32 at least, whatever precision training uses: rounding ψ to bfloat16 moved the test MAE of the full
        ZINC run from 0.0590 to 0.0598.
        """
        with torch.no_grad(), exact_products():
            return self.in_units(self._run(batch, streams))

    def in_units(self, prediction: Tensor) -> Tensor:
        """What the network returns [M, T], in the units of the data."""
        prediction = prediction.to(loss_dtype(prediction))
        return self.scale.restore(prediction) if self.recipe.scale_targets else prediction

    def _run(self, batch: Data | GraphBatch | LayeredBatch, streams: Streams) -> Tensor:
        if isinstance(self.model, StreamedModel):
            return self.model(batch, streams)
        # A model without streams does not say when the device is idle: the next batch may be assembled at once.
        streams.start_prefetch()
        return self.model(batch)


def loss_dtype(prediction: Tensor) -> torch.dtype:
    """Losses and metrics are computed in float32 at least."""
    return torch.float64 if prediction.dtype == torch.float64 else torch.float32
