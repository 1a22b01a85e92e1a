"""Small networks that cases are predicted with, built once per child."""

from dataclasses import replace
from functools import cache

import torch
from torch_geometric.data import Data

from ckgconv import recipe
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.models import build_model
from ckgconv.recipe import Recipe


@cache
def small(name: str = "zinc") -> tuple[Recipe, GraphModel]:
    """A recipe with few parameters, and its network."""
    chosen = recipe(name)
    chosen = replace(chosen, model=replace(chosen.model, width=4, blocks=1, steps=3))
    return chosen, build_model(chosen.model).eval()


def predict(batch: Data) -> None:
    """Predict a batch of molecules in the types of ZINC; what is no molecule is refused."""
    _, model = small()
    with torch.no_grad():
        predicted = model(batch)
    assert predicted.isfinite().all()
