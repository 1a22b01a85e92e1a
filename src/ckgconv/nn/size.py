"""Whether a network fits into memory, asked before it is built.

    p(B) = p(2) + (B - 2)/2 · (p(4) - p(2))

Parameters grow by the same number with every two blocks, so those of a deep network follow from shallow ones, which
are built without memory (torch's device "meta").

Legend: B blocks, p parameters.
"""

from dataclasses import replace

import torch

from ckgconv.checks import require
from ckgconv.nn.graph_model import GraphModel
from ckgconv.pairs.memory import GIGABYTE, free_bytes
from ckgconv.recipe import ModelRecipe

# Products of a recipe's numbers below which nothing is counted: such a network has fewer than 10⁸ parameters.
ORDINARY_BLOCKS, ORDINARY_TABLES = 2**22, 2**24
# The weights, and those that are read from a file or drawn anew.
COPIES = 2


def check_size(kind: type[GraphModel], recipe: ModelRecipe) -> None:
    """Refuse a network whose weights alone do not fit into memory."""
    if _is_ordinary(recipe):
        return
    parameters = count_parameters(kind, recipe)
    needed, free = COPIES * torch.get_default_dtype().itemsize * parameters, free_bytes(torch.device("cpu"))
    require(
        free is None or needed <= free,
        f"The network of this recipe has about {parameters:,} parameters, which need {needed / GIGABYTE:,.1f} GB; "
        f"{(free or 0) / GIGABYTE:,.1f} GB are free: choose a smaller model.width, fewer model.blocks or smaller "
        f"tables.",
    )


def count_parameters(kind: type[GraphModel], recipe: ModelRecipe) -> int:
    """p, without building more than four blocks."""
    blocks = getattr(recipe, "blocks", 0)
    if blocks <= 4:
        return _built(kind, recipe)
    two, four = (_built(kind, replace(recipe, blocks=count)) for count in (2, 4))  # type: ignore[call-arg]
    return two + (blocks - 2) * (four - two) // 2


def _built(kind: type[GraphModel], recipe: ModelRecipe) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in kind(recipe).parameters())


def _is_ordinary(recipe: ModelRecipe) -> bool:
    wide = max(
        recipe.width, recipe.position_channels, getattr(recipe, "heads", 1) * getattr(recipe, "head_channels", 1)
    )
    rows = sum(recipe.node.sizes) + sum(recipe.edge.sizes) + recipe.head.outputs + recipe.steps + recipe.node_steps
    deep = getattr(recipe, "blocks", 1) + recipe.head.layers
    return deep * wide**2 <= ORDINARY_BLOCKS and wide * rows <= ORDINARY_TABLES
