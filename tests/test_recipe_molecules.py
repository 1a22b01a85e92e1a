"""Recipes of tables: settings by the number of rows and the task, and what begins with the pretrained network."""

from dataclasses import replace

import pytest
import torch

from ckgconv.engine.initial_weights import take_weights
from ckgconv.nn.models import build_model
from ckgconv.recipe import DataRecipe
from ckgconv.recipes import recipe
from ckgconv.recipes.molecules import MOST_EPOCHS, fitting, in_words, molecules, size
from ckgconv.recipes.pretraining import PRETRAINED, fits_pretrained, molecule_network


def table(**given):
    return molecules(DataRecipe("t.csv", targets=("a", "b")), **given)


def test_small_tables_are_read_more_often():
    sizes = [size(rows) for rows in (1, 500, 1000, 4000, 20_000, 10**6)]
    assert [each.epochs for each in sizes] == sorted((each.epochs for each in sizes), reverse=True)
    assert sizes[0].epochs == MOST_EPOCHS
    assert sizes[0].batch_size < sizes[-1].batch_size
    assert all(0 < each.patience <= each.epochs for each in sizes)


def test_the_task_chooses_loss_metric_and_scale():
    values, labels = table().training, table(classification=True).training
    assert (values.metric, values.scale_targets) == ("mae", True)
    assert (labels.loss, labels.metric, labels.scale_targets) == ("binary", "auroc", False)


def test_the_line_says_what_was_chosen():
    said = in_words(table(rows=1000, read=3))
    for part in (PRETRAINED, "4 blocks", "width 128", "3 features", f"{size(1000).epochs} epochs"):
        assert part in said
    scratch = replace(table(), training=replace(table().training, init="", freeze=1))
    assert "random weights, of which 1 blocks stay" in in_words(scratch)


@pytest.mark.parametrize(
    ("changes", "fits"),
    [({}, True), ({"dropout": 0.3, "support": 3, "graph_features": 7}, True), ({"width": 32}, False)],
)
def test_a_changed_network_begins_from_scratch(changes, fits):
    chosen = replace(table(), model=replace(table().model, **changes))
    assert fits_pretrained(chosen.model) == fits
    assert fitting(chosen).training.init == (PRETRAINED if fits else "")
    if fits:
        take_weights(build_model(chosen.model), PRETRAINED)


def test_other_recipes_stay_as_they_are():
    assert fitting(recipe("zinc")) == recipe("zinc")
    assert not fits_pretrained(recipe("zinc-grit").model)


def test_the_pretrained_network_is_that_of_the_recipe():
    model = build_model(molecule_network(1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    take_weights(model, PRETRAINED)
    changed = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    assert changed
    assert not any(name.startswith("head.") for name in changed)
