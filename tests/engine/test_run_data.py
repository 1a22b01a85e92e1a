"""Targets that a loss cannot be trained on are refused before training, with the value and what to do."""

from dataclasses import replace

import pytest
import torch
from small_data import small_dataset

from ckgconv import InputError, recipe, train


def small(name):
    chosen = recipe(name)
    model = replace(chosen.model, width=8, blocks=1, steps=2)
    return replace(chosen, model=model, training=replace(chosen.training, epochs=1, warmup_epochs=0, batch_size=3))


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("mnist", lambda y: y + 9, r"contains 1\d, but the model has classes 0 … 9"),
        ("mnist", lambda y: y - 12, "contains -[0-9]+, but the model has classes"),
        ("mnist", lambda y: y.float(), "needs one whole number per row"),
        ("pattern", lambda y: y + 1, "contains 2, but the model has classes 0 … 1"),
        ("zinc", lambda y: y.view(-1, 1).repeat(1, 2), "has 2 values per row, but model.head.outputs is 1"),
        ("zinc", lambda y: y / 0, "contains -?inf, but values are finite"),
        ("peptides-func", lambda y: y + 3, "contains [34], but labels are 0 or 1"),
        ("peptides-func", lambda y: y[:, :4], "has 4 values per row, but model.head.outputs is 10"),
    ],
)
def test_wrong_targets_are_named(name, change, sentence, tmp_path):
    chosen = small(name)
    data = small_dataset(chosen)
    with pytest.raises(InputError, match=sentence):
        train(chosen, data=replace(data, y=change(data.y)), device="cpu", folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_classes_may_be_of_any_whole_type():
    chosen = small("mnist")
    data = small_dataset(chosen)
    train(chosen, data=replace(data, y=data.y.to(torch.uint8)), device="cpu")


def test_unknown_targets_pass():
    chosen = small("mnist")
    data = small_dataset(chosen)
    y = data.y.clone()
    y[data.train[0]] = -1
    train(chosen, data=replace(data, y=y), device="cpu")
    chosen = small("zinc")
    data = small_dataset(chosen)
    y = data.y.clone()
    y[data.train[0]] = torch.nan
    train(chosen, data=replace(data, y=y), device="cpu")
