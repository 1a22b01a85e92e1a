"""Heads: node features → predictions (the task-dependent output of Appendix A).

    pyramid      D → D/2 → D/4 → T, with GELU in between, or ReLU
    normalised   (linear → ReLU → L2-normalise) × (layers - 1) → linear
    mlp          (drop → linear → GELU, or ReLU) × (layers - 1) → drop → linear

each per node, or after summing or averaging the nodes of each graph.

Legend: G graphs, N nodes, D width, T outputs.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_choice, require
from ckgconv.ops.dropout import dropout
from ckgconv.ops.pool import pool
from ckgconv.recipe import HeadRecipe

Pooling = Literal["sum", "mean", "none"]


class Pool(nn.Module):
    """Nodes of each graph → one vector: [N, D] → [G, D]; "none" returns the nodes unchanged."""

    def __init__(self, pooling: Pooling) -> None:
        super().__init__()
        check_choice("pooling", pooling, get_args(Pooling))
        self.pooling = pooling

    def forward(self, x: Tensor, node_graph: Tensor, node_ptr: Tensor) -> Tensor:
        if self.pooling == "none":
            return x
        return pool(x, node_graph, node_ptr, self.pooling)

    def extra_repr(self) -> str:
        return self.pooling


class PyramidHead(nn.Module):
    """Halves the width at each layer, with GELU in between: [·, D] → [·, T]."""

    linears: Sequence[nn.Linear]

    def __init__(self, width: int, outputs: int, layers: int = 3) -> None:
        super().__init__()
        widths = [width // 2**level for level in range(layers)]
        self.linears = nn.ModuleList(  # type: ignore[assignment]
            nn.Linear(wide, narrow) for wide, narrow in zip(widths, [*widths[1:], outputs], strict=True)
        )

    def reset_parameters(self) -> None:
        for linear in self.linears:
            linear.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.linears
        for linear in hidden:
            x = self.activate(linear(x))
        return last(x)

    def activate(self, x: Tensor) -> Tensor:
        """What lies between two layers, [·, ·] → [·, ·]."""
        return F.gelu(x)


class ReLUPyramidHead(PyramidHead):
    """A pyramid with ReLU in between: [·, D] → [·, T]."""

    def activate(self, x: Tensor) -> Tensor:
        return torch.relu(x)


class MLPHead(nn.Module):
    """Hidden layers of one width, with dropout before each layer and GELU in between: [·, D] → [·, T]."""

    linears: Sequence[nn.Linear]

    def __init__(self, width: int, outputs: int, layers: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.linears = nn.ModuleList(  # type: ignore[assignment]
            nn.Linear(width, width if level < layers - 1 else outputs) for level in range(layers)
        )

    def reset_parameters(self) -> None:
        for linear in self.linears:
            linear.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.linears
        for linear in hidden:
            x = self.activate(linear(dropout(x, self.dropout, self.training)))
        return last(dropout(x, self.dropout, self.training))

    def activate(self, x: Tensor) -> Tensor:
        """What lies between two layers, [·, D] → [·, D]."""
        return F.gelu(x)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


class ReLUMLPHead(MLPHead):
    """An MLP with ReLU in between: [·, D] → [·, T]."""

    def activate(self, x: Tensor) -> Tensor:
        return torch.relu(x)


class NormalisedHead(MLPHead):
    """An MLP with ReLU and L2-normalisation in between: [·, D] → [·, T]."""

    def activate(self, x: Tensor) -> Tensor:
        return F.normalize(torch.relu(x), dim=-1, eps=1e-12)


Head = PyramidHead | MLPHead


def make_head(recipe: HeadRecipe, width: int) -> Head:
    """The head of a recipe, with GELU in between where the recipe leaves that to the model."""
    return _head(recipe, width, "gelu" if recipe.activation == "model" else recipe.activation)


def make_relu_head(recipe: HeadRecipe, width: int) -> Head:
    """The same for models that use ReLU throughout."""
    return _head(recipe, width, "relu" if recipe.activation == "model" else recipe.activation)


def _head(recipe: HeadRecipe, width: int, activation: Literal["relu", "gelu"]) -> Head:
    """The head of a recipe's kind, for features of that width."""
    if recipe.kind == "mlp":
        mlp = MLPHead if activation == "gelu" else ReLUMLPHead
        return mlp(width, recipe.outputs, recipe.layers, recipe.dropout)
    require(
        recipe.dropout == 0,
        f"model.head.dropout is {recipe.dropout}, but a head of kind {recipe.kind!r} has none: set it to 0, or choose "
        f"kind 'mlp'.",
    )
    if recipe.kind == "pyramid":
        most = width.bit_length()
        require(
            recipe.layers <= most,
            f"model.head.layers is {recipe.layers}, but halved at each layer {width} channels have none left after "
            f"{most}: set it to at most {most}, or choose kind 'mlp'.",
        )
        pyramid = PyramidHead if activation == "gelu" else ReLUPyramidHead
        return pyramid(width, recipe.outputs, recipe.layers)
    require(
        recipe.activation != "gelu",
        "model.head.activation is 'gelu', but a normalised head has ReLU: set it to 'model', or choose kind 'mlp'.",
    )
    return NormalisedHead(width, recipe.outputs, recipe.layers)
