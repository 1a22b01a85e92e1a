"""Any torch module as the model of a run: PyG `Data` with a `batch` vector → predictions.

The module is not changed. The wrapper answers what the engine asks every model: dtype, number of outputs, whether it
predicts per node. Nothing is prepared and nothing padded, so such a model runs eagerly.

Legend: G graphs, N nodes, T outputs.
"""

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ckgconv.checks import require, shown
from ckgconv.graphs import OpaqueBatch
from ckgconv.nn.graph_model import GraphModel
from ckgconv.pairs import encoding_of
from ckgconv.recipe import ModelRecipe, TrainingRecipe

# A module, of which a copy is trained, or a function that makes one.
GivenModel = nn.Module | Callable[[], nn.Module]


class OwnModel(GraphModel):
    """A module under the interface of `GraphModel`.

    Args:
        module: from a PyG `Data` with `x`, `edge_index`, `batch` and what else the data set has to [G, T], or to [N, T]
            for predictions of nodes.
        recipe: its `head` says how many outputs T there are, and with `pooling` "none" that they are per node.
    """

    static: ClassVar[bool] = False

    def __init__(self, module: nn.Module, recipe: ModelRecipe) -> None:
        nn.Module.__init__(self)  # none of the recipe's parts is built
        require(
            next(module.parameters(), None) is not None,
            f"The model given, a {type(module).__name__}, has no parameters: give one that can be trained.",
        )
        self.recipe = recipe
        self.encoding = encoding_of(recipe)
        self.module = module

    def prepare(self, data: Data) -> Any:
        """The data itself."""
        return data

    def forward(self, data: Any) -> Tensor:
        # A copy of the object, not of its tensors: a module may assign to attributes of what it reads.
        return self.module(copy(data.batch if isinstance(data, OpaqueBatch) else data))

    def embed(self, batch: Any) -> Tensor:
        """What the module's own `embed` returns; no features where it has none."""
        own = getattr(self.module, "embed", None)
        features: Tensor = self(batch)[:, :0] if own is None else own(batch)
        return features

    def extra_repr(self) -> str:
        return ""

    @torch.no_grad()
    def check(self, data: Data, recipe: TrainingRecipe) -> None:
        """Refuse samples of one large graph, and predictions of the wrong shape, tried on one graph."""
        require(
            recipe.sampling.kind == "none",
            f"training.sampling.kind is {recipe.sampling.kind!r}, but the model given, a {type(self.module).__name__}, "
            f"reads whole graphs: set it to 'none', or derive the model from GraphModel.",
        )
        training = self.training
        prediction = self.eval()(data)
        self.train(training)
        rows = data.num_nodes if self.predicts_nodes else 1
        found = list(prediction.shape) if isinstance(prediction, Tensor) else type(prediction).__name__
        per_row = "node, since model.head.pooling is 'none'" if self.predicts_nodes else "graph"
        require(
            found == [rows, self.outputs],
            f"The model given returned {found} for one graph of {data.num_nodes} nodes, expected "
            f"{[rows, self.outputs]}: return model.head.outputs = {self.outputs} numbers per {per_row}, or change "
            f"model.head of the recipe.",
        )


def given_model(given: GivenModel, recipe: ModelRecipe) -> GraphModel:
    """A copy of a given module, or what a function makes; wrapped unless it is a `GraphModel`."""
    usable = isinstance(given, nn.Module) or callable(given)
    require(usable, f"model is {shown(given)}: give a torch module, or a function of one.")
    made = deepcopy(given) if isinstance(given, nn.Module) else given()
    require(
        isinstance(made, nn.Module), f"model made a {type(made).__name__}: give a torch module, or a function of one."
    )
    if not isinstance(made, GraphModel):
        return OwnModel(made, recipe)
    require(
        made.recipe == recipe,
        f"The model given, a {type(made).__name__}, was built from another recipe than that of the run: give "
        f"replace(recipe, model=model.recipe).",
    )
    return made
