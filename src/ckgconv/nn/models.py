"""Models by the kind named in a recipe."""

from ckgconv.checks import require
from ckgconv.nn.ckgcn import CKGCN
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.graphormer import Graphormer
from ckgconv.nn.grit import GRIT
from ckgconv.nn.hybrid import Hybrid
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.nn.propagation import Propagation
from ckgconv.nn.san import SAN
from ckgconv.nn.size import check_size
from ckgconv.recipe import ModelRecipe
from ckgconv.recipe.values import check_recipe
from ckgconv.registry import Registry

OURS: dict[str, type[GraphModel]] = {
    "ckgcn": CKGCN,
    "grit": GRIT,
    "hybrid": Hybrid,
    "message_passing": MessagePassing,
    "propagation": Propagation,
    "graphormer": Graphormer,
    "san": SAN,
}
MODELS: Registry[type[GraphModel]] = Registry("model", "ckgconv.models", OURS)


def build_model(recipe: ModelRecipe) -> GraphModel:
    """The network of a recipe's kind, with parameters drawn by torch's generator."""
    check_kind(recipe)
    check_recipe(recipe, "model")
    kind = MODELS[recipe.kind]
    check_size(kind, recipe)
    return kind.from_recipe(recipe)


def check_kind(recipe: ModelRecipe) -> None:
    """Refuse a kind that does not exist, or whose recipe class is not that of this recipe."""
    wanted = MODELS[recipe.kind].Recipe
    require(
        isinstance(recipe, wanted),
        f"model.kind is {recipe.kind!r}, whose values are a {wanted.__name__}, not a {type(recipe).__name__}: choose a "
        f"recipe of that kind.",
    )
