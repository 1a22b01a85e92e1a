"""The recipes have the values of the paper's tables, and are frozen."""

from dataclasses import FrozenInstanceError

import pytest

from ckgconv import RECIPES, recipe

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
