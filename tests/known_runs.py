"""Runs whose networks are known: small random ones, and one whose prediction is a sum over atoms and bonds."""

from dataclasses import replace

import torch
from torch import nn

from ckgconv.engine.record import new_record
from ckgconv.engine.run import Run, make_learner
from ckgconv.engine.run_data import no_data
from ckgconv.engine.setup import make_fabric
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.models import build_model
from ckgconv.recipe import DataRecipe
from ckgconv.recipes.molecules import molecules


class SumOfParts(GraphModel):
    """ŷ = Σ_atoms w · T[a] + Σ_directed edges w · B[b] + 1: what each part contributes can be read off."""

    def __init__(self, recipe):
        super().__init__(recipe)
        self.head = nn.Linear(recipe.width, recipe.head.outputs)
        nn.init.ones_(self.head.bias)

    def node_states(self, batch):
        atoms = self.node_encoder(batch.node_features, len(batch.node_features))
        bonds = self.edge_encoder(batch.edge_features, len(batch.edge_row))
        return atoms.index_add(0, batch.pairs.receiver[batch.edge_row], bonds)


def small_recipe(targets=("y",), classification=False, **changes):
    recipe = molecules(DataRecipe("table.csv", targets=targets), classification)
    model = replace(recipe.model, **{"width": 8, "blocks": 2, "steps": 3, **changes})
    return replace(recipe, model=model)


def run_of(recipe, model=None):
    """An untrained run in memory; running statistics are moved away from their initial values."""
    torch.manual_seed(0)
    model = build_model(recipe.model) if model is None else model
    for name, value in model.named_buffers():
        if "running" in name:
            value.add_(torch.rand_like(value))
    for parameter in model.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    learner = make_learner(make_fabric("cpu", "32"), model, no_data(), recipe)
    return Run(recipe, learner, new_record(recipe, 0, 1, torch.device("cpu"), "32"), None, {})


def sum_of_parts():
    """A run of `SumOfParts`."""
    recipe = small_recipe()
    recipe = replace(recipe, model=replace(recipe.model, head=replace(recipe.model.head, pooling="sum", scale=1.0)))
    return run_of(recipe, SumOfParts(recipe.model))
