"""The recipes have the values of the paper's tables, and are frozen."""

from dataclasses import FrozenInstanceError
from operator import attrgetter
from pathlib import Path

import pytest

from ckgconv import RECIPES, recipe
from ckgconv.campaigns.plan import read_campaign, shipped

# steps, blocks, width, dropout, kernel dropout, MLP dropout, batch, epochs, warm-up, lowest rate, weight decay
TABLE = {
    "zinc": (21, 10, 64, 0, 0.5, 0.1, 32, 2000, 50, 1e-6, 1e-5),
    "mnist": (18, 4, 48, 0, 0.5, 0.2, 16, 200, 5, 1e-4, 1e-5),
    "cifar10": (18, 3, 56, 0, 0.5, 0.1, 16, 200, 5, 1e-4, 1e-5),
    "pattern": (21, 10, 64, 0, 0.5, 0.2, 16, 200, 10, 1e-4, 1e-5),
    "cluster": (32, 16, 54, 0.05, 0.2, 0.1, 16, 200, 10, 1e-4, 1e-5),
    "peptides-func": (24, 4, 96, 0, 0.5, 0.2, 16, 200, 10, 1e-4, 0),
    "peptides-struct": (24, 4, 96, 0.05, 0.2, 0.2, 16, 200, 5, 1e-4, 0),
    "cifar10-printed": (18, 3, 56, 0, 0.5, 0, 16, 200, 5, 1e-4, 1e-5),
    "cluster-printed": (32, 16, 54, 0.01, 0.5, 0.5, 16, 200, 10, 1e-4, 1e-5),
    "peptides-func-printed": (24, 4, 96, 0, 0.5, 0.2, 16, 200, 5, 1e-4, 0),
    "zinc-concatenate": (21, 10, 64, 0, 0.5, 0.1, 32, 2000, 50, 1e-6, 1e-5),
}


# Levers of docs/levers.md: the value at which each is off.
OFF = {
    "training.ema_decay": 0.0,
    "training.norm_statistics": "running",
    "training.smooth_validation": 1,
    "training.schedule": "cosine",
    "model.drop_path": 0.0,
    "model.coordinate_features": 0,
    "model.size_features": False,
    "model.relative_positions": False,
    "model.encoding": "rrwp",
    "model.kernel.norm": "batch",
    "model.head.activation": "model",
}


@pytest.mark.parametrize("path", OFF)
@pytest.mark.parametrize("name", TABLE)
def test_levers_are_off_in_published_recipes(name, path):
    assert attrgetter(path)(recipe(name)) == OFF[path]
    assert recipe(name).model.head.kind in ("pyramid", "normalised")


# Levers for few labels, which the recipes for nodes and folds use.
FEW_LABELS = {"training.select": "metric", "training.draws": 1, "training.consistency": 0.0}
# Those that the recipes for tables of molecules use.
FEW_LABELS |= {"training.init": "", "training.freeze": 0, "model.graph_features": 0, "model.head.scale": 1.0}


@pytest.mark.parametrize("path", FEW_LABELS)
@pytest.mark.parametrize("name", TABLE)
def test_levers_for_few_labels_are_off_in_published_recipes_and_on_their_page(name, path):
    assert attrgetter(path)(recipe(name)) == FEW_LABELS[path]
    assert f"`{path}" in (Path(__file__).parents[1] / "docs" / "levers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [*OFF, "model.head.kind", "training.cooldown"])
def test_every_lever_is_on_its_page_and_tried_by_a_campaign(path):
    page = Path(__file__).parents[1] / "docs" / "levers.md"
    assert f"`{path}" in page.read_text(encoding="utf-8")
    tried = {
        change.partition("=")[0] for name in shipped() for run in read_campaign(name).runs() for change in run.changes
    }
    assert path in tried or path == "training.cooldown"  # the default share, with schedule constant_linear


@pytest.mark.parametrize("name", TABLE)
def test_values_of_the_table(name):
    model, training = recipe(name).model, recipe(name).training
    assert TABLE[name] == (
        model.steps,
        model.blocks,
        model.width,
        model.dropout,
        model.kernel.dropout,
        model.kernel.mlp_dropout,
        training.batch_size,
        training.epochs,
        training.warmup_epochs,
        training.min_learning_rate,
        training.weight_decay,
    )
    assert training.learning_rate == 1e-3
    assert training.clip_norm == 1.0


def test_every_row_of_the_paper_has_a_recipe():
    assert set(TABLE) <= set(RECIPES)


def test_recipes_are_frozen():
    with pytest.raises(FrozenInstanceError):
        recipe("zinc").name = "mine"
