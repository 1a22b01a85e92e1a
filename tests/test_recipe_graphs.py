"""Recipes for folds of small graphs. Covers `ckgconv.recipes.graphs`."""

from dataclasses import replace

import official_archives as made
import pytest
import torch
from torch_geometric.data import Data

from ckgconv import InputError, recipe, train_folds
from ckgconv.data import from_pyg, load
from ckgconv.data.official import OFFICIAL
from ckgconv.recipe import DataRecipe
from ckgconv.recipes.graphs import for_graphs


def ring(size: int, kind: int, **more) -> Data:
    node = torch.arange(size)
    edges = torch.cat([torch.stack([node, node.roll(-1)]), torch.stack([node.roll(-1), node])], dim=1)
    return Data(x=torch.full((size, 3), float(kind)), edge_index=edges, y=torch.tensor([kind]), **more)


def test_a_recipe_is_fitted_to_graphs_and_trained_by_folds():
    data = from_pyg([ring(3 + number % 4, number % 3) for number in range(12)])
    fitted = for_graphs(recipe("mutag"), data)
    assert (fitted.model.node.sizes, fitted.model.edge.kind, fitted.model.head.outputs) == ((3,), "constant", 3)
    short = replace(fitted.training, epochs=1, warmup_epochs=0)
    small = replace(fitted.model, width=4, blocks=1)
    found = train_folds(replace(fitted, model=small, training=short), 3, data=data, device="cpu")
    assert len(found.runs) == 3
    attributed = from_pyg([ring(4, kind, edge_attr=torch.rand(8, 2)) for kind in (0, 1)])
    assert for_graphs(recipe("mutag"), attributed).model.edge.sizes == (2,)


def test_refusals():
    data = from_pyg([ring(4, 0), ring(5, 1)])
    for changed, words in (
        (replace(data, x=data.x.long()), "x has shape .* types one-hot"),
        (replace(data, y=data.y.float()), "give one whole number per graph"),
        (replace(data, y=None), "give a class per graph"),
    ):
        with pytest.raises(InputError, match=words):
            for_graphs(recipe("mutag"), changed)


def test_mutag_comes_from_its_official_source(tmp_path, monkeypatch):
    files = made.mutag()
    with made.serving(files) as address:
        monkeypatch.setitem(OFFICIAL, "mutag", made.local("mutag", address, files, {"test": 2}))
        assert load(DataRecipe("mutag"), tmp_path).num_graphs == 2
    with pytest.raises(InputError, match=r"mutag could not be downloaded.* put its packed file"):
        load(DataRecipe("mutag"), tmp_path)
