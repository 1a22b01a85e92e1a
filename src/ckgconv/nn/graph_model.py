"""The interface of every model: graphs → node states → pooled features → predictions.

    batch = prepare(data)         pseudo-coordinates and support; nothing is learned here
    h     = node_states(batch)    [N, D], what a model defines
    z     = embed(batch)          [G, D] pooled, or [N, D] where predictions are per node; features of graphs join it
    ŷ     = forward(batch)        [G, T] or [N, T]: the head of z

A custom model derives from `GraphModel`, builds its layers and its head, and defines `node_states`; training,
prediction, export and benchmarks then work with it. With `depth`, `input_states` and `layer_states` it can also be
trained on samples of one large graph and be evaluated there layer by layer. Batches may be padded to a static capacity:
padding nodes have `node_weight` 0 and padding pairs `row_weight` 0, and no real node may depend on them.

Legend: G graphs, N nodes, D width, T outputs.
"""

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ckgconv.checks import check_finite, check_floating, check_instance, check_shape, require
from ckgconv.graphs import GraphBatch, LayeredBatch, OpaqueBatch
from ckgconv.nn.encoders import AttributeEncoder, attribute_encoder
from ckgconv.nn.graph_features import GraphFeatures
from ckgconv.nn.head import Pool
from ckgconv.nn.step_memory import ChecksStepMemory
from ckgconv.ops.precision import without_autocast
from ckgconv.pairs import collate, encoding_of
from ckgconv.recipe import ModelRecipe
from ckgconv.recipe import Recipe as NamedRecipe
from ckgconv.recipe.values import check_recipe


class GraphModel(ChecksStepMemory, nn.Module):
    """Base of all models.

    Args:
        recipe: an instance of the class's `Recipe`.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.
    """

    Recipe: ClassVar[type[ModelRecipe]] = ModelRecipe
    # Whether a step has the same shapes for every batch of a capacity and reads nothing back to the host, so that it
    # can be captured as a CUDA graph.
    static: ClassVar[bool] = True

    head: nn.Module

    def __init__(self, recipe: ModelRecipe) -> None:
        super().__init__()
        check_recipe(recipe)
        self.recipe = recipe
        self.encoding = encoding_of(recipe)
        node_encoder = attribute_encoder(recipe.node, recipe.width)
        require(node_encoder is not None, "node.kind is 'none': a network needs node features, choose another.")
        assert node_encoder is not None
        self.node_encoder: AttributeEncoder = node_encoder
        self.edge_encoder = attribute_encoder(recipe.edge, recipe.width)
        self.pool = Pool(recipe.head.pooling)
        require(
            not recipe.graph_features or recipe.head.pooling != "none",
            f"model.graph_features is {recipe.graph_features}, but the head does not pool: predictions of nodes have "
            f"no features of graphs, so set it to 0.",
        )
        self.graph_join = GraphFeatures(recipe.graph_features) if recipe.graph_features else None

    @classmethod
    def from_recipe(cls, recipe: str | NamedRecipe | ModelRecipe) -> Self:
        """The model of a recipe, or of a recipe's name ("zinc", "mnist", …)."""
        if isinstance(recipe, str):
            # Named recipes import the models: this is the one import against the order of rooms.
            from ckgconv.recipes import recipe as recipe_of

            recipe = recipe_of(recipe)
        model = recipe.model if isinstance(recipe, NamedRecipe) else recipe
        check_instance("recipe", model, ModelRecipe, "a recipe, or the name of one")
        require(
            isinstance(model, cls.Recipe),
            f"The recipe is of kind {model.kind!r}, not of {cls.__name__}: build it with that kind's class.",
        )
        return cls(model)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """[N, D] features of every node after the last layer."""
        raise TypeError(f"{type(self).__name__} has no node_states: define it, or choose a model that has it.")

    @property
    def depth(self) -> int:
        """Layers that `layer_states` computes one at a time; 0 where the model cannot be run so."""
        return 0

    def input_states(self, batch: GraphBatch) -> Tensor:
        """[N, D] features of every node before the first layer; pairs are not read."""
        raise TypeError(f"{type(self).__name__} has no input_states: define it, or choose a model that has it.")

    def layer_states(self, layer: int, states: Tensor, batch: GraphBatch) -> Tensor:
        """[N, D] features of every node after a layer, from those before it; row i reads only the support of i."""
        raise TypeError(f"{type(self).__name__} has no layer_states: define it, or choose a model that has it.")

    def layered_states(self, layered: LayeredBatch) -> Tensor:
        """[S, D] features of the seed nodes after the last layer."""
        states = self.input_states(replace(layered.batches[0], node_weight=None))
        for layer, (batch, receivers) in enumerate(zip(layered.batches, layered.receivers, strict=True)):
            states = self.layer_states(layer, states, batch).index_select(0, receivers)
        return states

    def embed(self, batch: GraphBatch) -> Tensor:
        """What the head reads: [G, D], or [N, D] where predictions are per node."""
        return self.pooled(self.node_states(batch), batch)

    def pooled(self, states: Tensor, batch: GraphBatch) -> Tensor:
        """Node states [N, D] → what the head reads, with the features of each graph where the recipe has some."""
        embedding = self.pool(states, batch.pairs.node_graph, batch.node_ptr)
        if self.recipe.head.scale != 1:
            embedding = embedding * self.recipe.head.scale
        if self.graph_join is None:
            return embedding
        assert batch.graph_features is not None
        return self.graph_join(embedding, batch.graph_features)

    def read_out(self, embedding: Tensor) -> Tensor:
        """The head in full precision: [·, D] → [·, T]."""
        with without_autocast(embedding):
            return self.head(embedding.to(self.dtype))

    def forward(self, data: Data | GraphBatch | LayeredBatch | OpaqueBatch) -> Tensor:
        data = data.batch if isinstance(data, OpaqueBatch) else data
        if isinstance(data, LayeredBatch):
            return self.read_out(self.layered_states(data))
        batch = data if isinstance(data, GraphBatch) else self.prepare_step(data)
        return self.read_out(self.embed(batch))

    @torch.compiler.disable
    def prepare_step(self, data: Data) -> GraphBatch:
        """`prepare`, where a step on the batch fits into the memory of its device."""
        self.check_all_pairs(data)
        batch = self.prepare(data)
        self.check_step(batch.pairs.coordinates.shape[0], batch.degree.device)
        return batch

    @torch.compiler.disable
    def prepare(self, data: Data) -> GraphBatch:
        """Check the input, compute coordinates and support on the device of `data`; nothing is learned here."""
        data = self._with_position(data)
        batch = collate(data, self.encoding, self.dtype)
        if self.recipe.position_channels:
            batch = replace(batch, position=data.pos)
        batch = replace(batch, graph_features=self._graph_features(batch))
        self.node_encoder.check("x", batch.node_features, batch.node_features.shape[0])
        if self.edge_encoder is not None:
            self.edge_encoder.check("edge_attr", batch.edge_features, batch.edge_row.shape[0])
        return batch

    def _graph_features(self, batch: GraphBatch) -> Tensor | None:
        """Those of the batch [G, C], where the head reads them."""
        channels = self.recipe.graph_features
        if not channels:
            return None
        features = batch.graph_features
        require(
            features is not None,
            f"data has no graph_features, but the network reads {channels} of each graph: give [G, {channels}].",
        )
        assert features is not None
        check_shape("graph_features", features, (batch.num_graphs, channels), "give one row per graph.")
        return features.to(self.dtype)

    @property
    def head_width(self) -> int:
        """Channels that the head reads."""
        return self.recipe.width + self.recipe.graph_features

    @property
    def dtype(self) -> torch.dtype:
        """Of the parameters."""
        return next(self.parameters()).dtype

    @property
    def outputs(self) -> int:
        """T."""
        return self.recipe.head.outputs

    @property
    def predicts_nodes(self) -> bool:
        """Whether there is a prediction for each node, not for each graph."""
        return self.recipe.head.pooling == "none"

    @property
    def pair_traffic(self) -> int:
        """Fewest values per pair that a training step can read and write; 0 where they have not been counted."""
        return 0

    def parameters_by_component(self) -> dict[str, int]:
        """Trainable parameters of each component; a model may choose other components."""
        return {name: count_parameters([part]) for name, part in self.named_children() if count_parameters([part])}

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for part in self.children():
            _reset(part)

    def extra_repr(self) -> str:
        encoding = self.encoding
        return f"encoding={encoding.name!r}, steps={encoding.steps}, support={encoding.support!r}"

    def _with_position(self, data: Data) -> Data:
        """Superpixels: positions are appended to the node features."""
        channels = self.recipe.position_channels
        if not channels:
            return data
        for name in ("x", "pos"):
            require(getattr(data, name, None) is not None, f"data has no {name}: give node values and positions.")
        x = data.x.unsqueeze(-1) if data.x.dim() == 1 else data.x
        check_shape("pos", data.pos, (data.num_nodes, channels), "give one position per node.")
        for name in ("x", "pos"):
            check_floating(name, data[name], self.dtype)
            check_finite(name, data[name])
        joined = copy(data)
        joined.x = torch.cat([x, data.pos], dim=-1)
        return joined


def count_parameters(parts: list[Any]) -> int:
    """Trainable entries of modules; None counts as 0."""
    return sum(weight.numel() for part in parts if part is not None for weight in part.parameters())


def _reset(part: nn.Module) -> None:
    """By the module's own method, or by those of its children."""
    own = getattr(part, "reset_parameters", None)
    if callable(own):
        own()
        return
    for inner in part.children():
        _reset(inner)
