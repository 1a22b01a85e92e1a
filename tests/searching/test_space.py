import json
from dataclasses import replace

import pytest

from ckgconv import RECIPES, InputError
from ckgconv.recipe import DataRecipe
from ckgconv.recipes.molecules import molecules
from ckgconv.searching.space import BEGUN, FROM_SCRATCH, applied, checked, read_space


def test_the_default_space_leaves_out_what_a_recipe_does_not_have():
    table, labels, grit = (RECIPES[name]() for name in ("zinc-demo", "peptides-func", "zinc-grit"))
    assert set(read_space(None, table).entries) == set(FROM_SCRATCH)
    begun = replace(table, training=replace(table.training, init="zinc250k-descriptors"))
    assert set(read_space(None, begun).entries) == set(BEGUN)
    assert "training.loss" not in read_space(None, labels).entries
    assert "model.kernel.dropout" not in read_space(None, grit).entries


def test_distributions_and_own_values(search):
    found = search.space.distributions()
    assert [type(each).__name__ for each in found.values()] == [
        "CategoricalDistribution",
        "FloatDistribution",
        "CategoricalDistribution",
    ]
    own = search.space.own_values(search.recipe)
    assert own == {"model.width": 4, "training.learning_rate": 1e-3, "model.support": "global"}
    assert applied(search.recipe, {"model.support": 2, "model.width": 6}).model.support == 2
    whole = checked({"model.blocks": {"low": 1, "high": 5, "step": 2}}, search.recipe).distributions()
    assert whole["model.blocks"].step == 2


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ([], "no group of paths"),
        ({}, "no group of paths"),
        ({"model.widht": {"choices": [4]}}, "model.width"),
        ({"model.width": [4, 8]}, "not a group of choices or bounds"),
        ({"model.width": {"values": [4]}}, "'values', which is none of"),
        ({"model.width": {"choices": []}}, "no list of values"),
        ({"model.width": {"choices": [4, 4]}}, "given twice"),
        ({"model.width": {"choices": [[4]]}}, "give plain values"),
        ({"model.width": {"choices": [0]}}, "at least 1"),
        ({"model.width": {"choices": [4], "low": 1}}, "choices and bounds"),
        ({"model.width": {"low": 4}}, "no number as its 'high'"),
        ({"model.width": {"low": 8, "high": 4}}, "low 8 above high 4"),
        ({"model.width": {"low": 4.0, "high": 8}}, "model.width"),
        ({"model.blocks": {"low": 1, "high": 4, "step": 0.5}}, "step 0.5"),
        ({"model.kernel.dropout": {"low": 0.0, "high": 0.5, "log": True}}, "log bounds from 0.0"),
        ({"model.kernel.dropout": {"low": 0.1, "high": 0.5, "log": "yes"}}, "log 'yes'"),
        ({"model.kernel.dropout": {"low": 0.1, "high": 0.5, "log": True, "step": 0.1}}, "log and step"),
    ],
)
def test_wrong_spaces_are_refused(recipe, tmp_path, space, sentence):
    file = tmp_path / "space.json"
    file.write_text(json.dumps(space))
    with pytest.raises(InputError, match=sentence):
        read_space(file, recipe)


def test_what_is_no_json_is_refused(recipe, tmp_path):
    (tmp_path / "space.json").write_text("{")
    with pytest.raises(InputError, match="is no search space"):
        read_space(tmp_path / "space.json", recipe)
    with pytest.raises(InputError, match="cannot be read"):
        read_space(tmp_path / "nothing.json", recipe)


def test_what_was_given_is_not_varied(tmp_path):
    table = RECIPES["zinc-demo"]()
    given = ["training.epochs", "training.learning_rate", "model.kernel"]
    left = set(FROM_SCRATCH) - {"training.epochs", "training.learning_rate", "model.kernel.dropout"}
    assert set(read_space(None, table, given).entries) == left
    with pytest.raises(InputError, match="Every setting that a search varies was given"):
        read_space(None, table, list(FROM_SCRATCH))
    file = tmp_path / "space.json"
    file.write_text(json.dumps({"model.width": {"choices": [4, 8]}}))
    with pytest.raises(InputError, match=r"it varies model.width, whose value was given with the command"):
        read_space(file, table, ["model.width"])


def test_epochs_leave_room_for_a_warm_up_that_was_given():
    table = RECIPES["zinc-demo"]()
    slow = replace(table, training=replace(table.training, warmup_epochs=20))
    assert read_space(None, slow, ["training.warmup_epochs"]).entries["training.epochs"] == {"choices": [50, 80]}
    slower = replace(table, training=replace(table.training, warmup_epochs=60))
    assert "training.epochs" not in read_space(None, slower, ["training.warmup_epochs"]).entries
    assert read_space(None, slow).entries["training.epochs"] == FROM_SCRATCH["training.epochs"]


def test_pretrained_weights_that_were_given_are_kept(tmp_path):
    begun, file = molecules(DataRecipe("t.csv", targets=("y",))), tmp_path / "space.json"
    file.write_text(json.dumps({"model.width": {"choices": [128, 64]}}))
    with pytest.raises(InputError, match=r"varies model.width, which the weights given with --init fix"):
        read_space(file, begun, ["training.init"])
    assert set(read_space(file, begun).entries) == {"model.width"}
    file.write_text(json.dumps({"model.kernel.dropout": {"low": 0.0, "high": 0.5}}))
    assert set(read_space(file, begun, ["training.init"]).entries) == {"model.kernel.dropout"}
