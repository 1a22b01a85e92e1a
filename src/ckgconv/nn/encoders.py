"""Raw node and edge attributes → vectors of the network's width.

    types      Σ_f T_f[a_f], one learned table per attribute column (atom type; the nine columns of a molecule)
    linear     W a + b (one-hot features, pixel values); before it, where asked for, a/Σ|a| and dropout
    constant   one learned vector for every row (edges of graphs without edge attributes)

Legend: M rows (nodes or edges), F attribute columns, D width.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import (
    check_choice,
    check_finite,
    check_floating,
    check_index,
    check_probability,
    check_shape,
    require,
)
from ckgconv.ops.dropout import dropout
from ckgconv.ops.lookup import lookup
from ckgconv.recipe import AttributeRecipe


class TypeEncoder(nn.Module):
    """Sum of one embedding per column: int64 [M, F] → [M, D].

    Args:
        vocabulary: number of types in each column.
        width: D.
        initial: "normal" N(0, 1), or "xavier" uniform, as the published molecule encoders.
    """

    tables: Sequence[nn.Embedding]

    def __init__(self, vocabulary: Sequence[int], width: int, initial: Literal["normal", "xavier"] = "normal") -> None:
        super().__init__()
        self.initial = initial
        self.tables = nn.ModuleList(  # type: ignore[assignment]
            nn.Embedding(size, width) for size in vocabulary
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for table in self.tables:
            if self.initial == "normal":
                table.reset_parameters()
            else:
                nn.init.xavier_uniform_(table.weight)

    def check(self, name: str, attributes: Tensor | None, rows: int) -> None:
        require(
            attributes is not None,
            f"data has no {name}: the model embeds {len(self.tables)} column(s) of it.",
        )
        assert attributes is not None
        check_shape(name, attributes, (rows, len(self.tables)), "give as many columns as the model embeds.")
        for column, table in enumerate(self.tables):
            check_index(f"{name}[:, {column}]", attributes[:, column], table.num_embeddings, "types")

    def forward(self, attributes: Tensor, rows: int) -> Tensor:
        columns = attributes.unbind(1)
        return reduce(add, (lookup(column, table.weight) for column, table in zip(columns, self.tables, strict=True)))


class LinearEncoder(nn.Module):
    """W a + b: floating [M, F] → [M, D].

    Args:
        columns: F.
        width: D.
        normalise: "rows" divides each row by the sum of its absolute values; a row of zeros stays.
        dropout: on the attributes.
    """

    def __init__(
        self, columns: int, width: int, normalise: Literal["none", "rows"] = "none", dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_choice("normalise", normalise, ("none", "rows"))
        check_probability("dropout", dropout)
        self.normalise = normalise
        self.dropout = dropout
        self.linear = nn.Linear(columns, width)

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()

    def check(self, name: str, attributes: Tensor | None, rows: int) -> None:
        columns = self.linear.in_features
        require(attributes is not None, f"data has no {name}: the model reads {columns} column(s) of it.")
        assert attributes is not None
        check_shape(name, attributes, (rows, columns), "give as many columns as the model reads.")
        check_floating(name, attributes, self.linear.weight.dtype)
        check_finite(name, attributes)

    def forward(self, attributes: Tensor, rows: int) -> Tensor:
        return self.linear(self.inputs(attributes))

    def inputs(self, attributes: Tensor) -> Tensor:
        """a [M, F] as the linear map reads it."""
        return self.dropped(self.scaled(attributes))

    def scaled(self, attributes: Tensor) -> Tensor:
        """a [M, F] or a/Σ|a|."""
        return F.normalize(attributes, p=1.0, dim=-1) if self.normalise == "rows" else attributes

    def dropped(self, attributes: Tensor) -> Tensor:
        """[M, F] with dropout in training."""
        return dropout(attributes, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"normalise={self.normalise!r}, dropout={self.dropout}"


class ConstantEncoder(nn.Module):
    """One learned vector, whatever the attributes: [M, ·] → [M, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.vector)

    def check(self, name: str, attributes: Tensor | None, rows: int) -> None:
        """Nothing to check: attributes are not read."""

    def forward(self, attributes: Tensor | None, rows: int) -> Tensor:
        return self.vector.expand(rows, -1)


AttributeEncoder = TypeEncoder | LinearEncoder | ConstantEncoder


def attribute_encoder(recipe: AttributeRecipe, width: int) -> AttributeEncoder | None:
    """The encoder of a recipe's kind; None where attributes are not read."""
    if recipe.kind == "linear":
        require(
            len(recipe.sizes) == 1,
            f"Attributes of kind 'linear' are as many numbers as their one size says, and sizes is "
            f"{list(recipe.sizes)}: set sizes to [channels].",
        )
        return LinearEncoder(recipe.sizes[0], width, recipe.normalise, recipe.dropout)
    require(
        recipe.normalise == "none" and recipe.dropout == 0.0,
        f"Attributes of kind {recipe.kind!r} are not numbers to normalise or drop: set normalise to 'none' and dropout "
        f"to 0, or choose kind 'linear'.",
    )
    if recipe.kind == "none":
        return None
    if recipe.kind == "constant":
        return ConstantEncoder(width)
    return TypeEncoder(recipe.sizes, width, "normal" if recipe.kind == "types" else "xavier")
