"""Models by the kind that a recipe names."""

from ckgconv.nn.ckgcn import CKGCN
from ckgconv.nn.graph_model import GraphModel
from ckgconv.recipe import ModelRecipe
from ckgconv.registry import Registry

MODELS: Registry[type[GraphModel]] = Registry("model", "ckgconv.models", {"ckgcn": CKGCN})


def build_model(recipe: ModelRecipe) -> GraphModel:
    """The model of a recipe's kind, with parameters as they start."""
    return MODELS[getattr(recipe, "kind", "ckgcn")](recipe)
