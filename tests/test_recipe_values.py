"""Covers `ckgconv.recipe.format`, `ckgconv.recipe.limits`, `ckgconv.recipe.values`, `ckgconv.recipe.wording` and
`ckgconv.recipe.kinds`.
"""

import json
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import with_config

from ckgconv import CKGCN, RECIPES, InputError, recipe
from ckgconv.nn.models import build_model
from ckgconv.recipe import ModelRecipe
from ckgconv.recipe.limits import Count, Name, Positive, Share, usable_name
from ckgconv.recipe.values import KEPT, SETTINGS, Number, check_recipe, convert, read
from ckgconv.recipes import from_json, to_json, with_value


@pytest.mark.parametrize("name", RECIPES)
def test_json_round_trip(name):
    assert from_json(to_json(recipe(name)), "file") == recipe(name)


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("model.blocks=4", "model.blocks", 4),
        ("model.width=32", "model.width", 32),
        ("data.limit=256", "data.limit", 256),
        ("data.limit=null", "data.limit", None),
        ("model.support=3", "model.support", 3),
        ("model.support=sparse_global", "model.support", "sparse_global"),
        ("model.kernel.dropout=0", "model.kernel.dropout", 0.0),
        ("training.patience=5", "training.patience", 5),
        ("training.scale_targets=true", "training.scale_targets", True),
        ("model.node.sizes=[5, 6]", "model.node.sizes", (5, 6)),
        ('training.metrics=["rmse"]', "training.metrics", ("rmse",)),
        ("training.metrics=[rmse]", "training.metrics", ("rmse",)),
        ("training.metrics=[ trimmed_mae, rmse]", "training.metrics", ("trimmed_mae", "rmse")),
        ("data.smiles=[my column]", "data.smiles", "[my column]"),
    ],
)
def test_any_value_can_be_set(assignment, path, value):
    part = with_value(recipe("zinc"), assignment)
    for name in path.split("."):
        part = getattr(part, name)
    assert part == value
    assert type(part) is type(value)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("model.widht=3", r"model.widht is not a value of a recipe: did you mean model.width\?"),
        ("modle.width=3", r"did you mean model\?"),
        ("model.kernel.drop=1", r"did you mean model.kernel.dropout\?"),
        ("model.width", "has no '='"),
        ("model.width=wide", "model.width is 'wide': give a whole number"),
        ("model.width=3.5", "give a whole number"),
        ("model.width=true", "give a whole number"),
        ("model.dropout=much", "give a number"),
        ("model.norm=instance", "give one of batch, layer"),
        ("model.support=near", "give one of global, sparse_global or a whole number"),
        ("model.kernel=3", "is a group of values"),
        ("model.width.half=3", "model.width has no parts"),
        ("model.node.sizes=7", "give a list of a whole number"),
    ],
)
def test_typos_are_refused(assignment, words):
    with pytest.raises(InputError, match=words):
        with_value(recipe("zinc"), assignment)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("model.width=1000000000", "model.width is 1000000000: give at most 65,536"),
        ("model.width=1" + "0" * 4000, r"model.width is 1000.*\.\.\..*: give at most 65,536"),
        ("model.width=1" + "0" * 5000, "model.width cannot be read .*digits.*: give a plain value"),
        ("model.width=" + "[" * 100 + "]" * 100, "nested more than 32 deep"),
        ("model.width=" + "[" * 100_000, "model.width cannot be read"),
        ("model.width=-1", "model.width is -1: give at least 1"),
        ("data.split_seed=-1", "data.split_seed is -1: give at least 0"),
        ("data.split_seed=99999999999999999999", "data.split_seed is 99999999999999999999: give at most 2,147,483,647"),
        ("training.patience=0", "training.patience is 0: give at least 1"),
        ("model.coordinate_scale=1e300", r"model.coordinate_scale is 1e\+300: give at most 1e\+18"),
        ("training.draws=65536", "training.draws is 65536: give at most 64"),
        ("model.blocks=1000000", "model.blocks is 1000000: give at most 1,000"),
        ("model.kernel.blocks=-1", "model.kernel.blocks is -1: give at least 0"),
        ("model.node.sizes=[-1]", r"model.node.sizes\[0\] is -1: give at least 1"),
        ("model.steps=-1", "model.steps is -1: give at least 0"),
        ("training.learning_rate=Infinity", "training.learning_rate is inf: give a number"),
        ("training.learning_rate=NaN", "training.learning_rate is nan: give a number"),
        ("training.learning_rate=1" + "0" * 400, "training.learning_rate is 1000.*: give a number"),
        ("model.dropout=-Infinity", "model.dropout is -inf: give a number"),
        ("model.dropout=1", "model.dropout is 1: give less than 1"),
        ("model.kernel.mlp_dropout=1.0", "model.kernel.mlp_dropout is 1: give less than 1"),
        ("training.epochs=1e9", "training.epochs is 1000000000.0: give a whole number"),
        ("model.kind=[[[[[1]]]]]", r"model.kind cannot be set to \[\[\[\[\.\.\.\]\]\]\] alone"),
        ("model.support=100000000", "model.support is 100000000: give at most 10,000"),
        ("model.support=-1", "model.support is -1: give at least 0"),
        ("name=../../evil", "name is '../../evil': give a name of at most 240 characters, without '/'"),
        ("name=", "name is '': give a name"),
        ("name=.hidden", "name is '.hidden': give a name"),
        ('name="a\\u001b[31m"', r"name is 'a\\x1b\[31m': give a name"),
    ],
    ids=lambda text: text[:30],
)
def test_impossible_settings_are_refused_at_once(assignment, words):
    with pytest.raises(InputError, match=words):
        with_value(recipe("zinc"), assignment)


@pytest.mark.parametrize(
    "value",
    [[8], None, "8", -8, 8.0, True, 10**5000, float("nan"), np.int64(8), np.zeros(3)],
    ids=lambda value: type(value).__name__,
)
def test_widths_in_python_are_whole_numbers(value):
    with pytest.raises(InputError, match=r"width is .*: give (a whole number|at (least|most))"):
        CKGCN(replace(recipe("zinc").model, width=value))


@pytest.mark.parametrize("value", [np.int64(1), np.float32(1), np.bool_(True), torch.ones(()), Fraction(1, 2)])
def test_numbers_in_python_are_those_that_a_file_can_hold(value):
    chosen = recipe("zinc")
    with pytest.raises(InputError, match=r"learning_rate is .*: give a number of Python, such as float\("):
        check_recipe(replace(chosen, training=replace(chosen.training, learning_rate=value)))


def test_a_recipe_file_of_a_later_format_is_refused_by_name():
    values = json.loads(to_json(recipe("zinc")))
    assert from_json(json.dumps({"format": 1, **values}), "my.json") == recipe("zinc")
    with pytest.raises(InputError, match=r"my.json has format 2, and this version of ckgconv reads formats up to 1"):
        from_json(json.dumps({"format": 2, **values}), "my.json")
    for none in (0, "1", None, True):
        with pytest.raises(InputError, match=r"my.json has format .*: give a whole number, 1 in this version."):
            from_json(json.dumps({"format": none, **values}), "my.json")


@with_config(KEPT)
@dataclass(frozen=True)
class Inner:
    """Values of all sorts."""

    count: Count
    share: Share = 0.0
    score: Number = 0.0
    texts: dict[str, str] = field(default_factory=dict)


@with_config(SETTINGS)
@dataclass(frozen=True)
class Outer:
    """A group in a group."""

    inner: tuple[Inner, ...]
    size: Positive | None = None
    name: Name = "x"


@pytest.mark.parametrize(
    ("values", "half"),
    [
        ([], "it is [], not a group of values"),
        ({}, "it lacks inner"),
        ({"inner": {}}, "inner is {}, not a list"),
        ({"inner": [{"count": 0}]}, "inner[0].count is 0, not at least 1"),
        ({"inner": [{"count": True}]}, "inner[0].count is True, not a whole number"),
        ({"inner": [{"count": 1}, {"count": "1"}]}, "inner[1].count is '1', not a whole number"),
        ({"inner": [{"count": 1, "share": 1.0}]}, "inner[0].share is 1, not less than 1"),
        ({"inner": [{"count": 1, "score": "a"}]}, "inner[0].score is 'a', not a number"),
        ({"inner": [{"count": 1, "texts": {"a": 3}}]}, "inner[0].texts.a is 3, not a text"),
        ({"inner": [{"count": 1, "texts": {"\x1b[2J": 3}}]}, "inner[0].texts.'\\x1b[2J' is 3, not a text"),
        ({"inner": [], "size": 0}, "size is 0, not more than 0"),
        ({"inner": [], "size": math.inf}, "size is inf, not a number"),
        ({"inner": [], "size": "a"}, "size is 'a', not a number"),
        ({"inner": [], "zise": 1}, "it has no value 'zise'"),
        ({"inner": [], "name": "a/b"}, "name is 'a/b', not a name of at most 240 characters"),
        ({"inner": [], "name": "\ud800"}, "it cannot be read: "),
        ({"inner": [], "name": object()}, "it cannot be read: "),
    ],
    ids=lambda each: str(each)[:40].replace("\x1b", "").encode("ascii", "ignore").decode(),
)
def test_what_pydantic_refuses_is_told_on_one_line(values, half):
    with pytest.raises(InputError) as caught:
        read(values, Outer)
    message = str(caught.value)
    assert message.startswith(half)
    assert "\n" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    with pytest.raises(InputError, match=r"^my\.json.*\.$|did you mean size\?$"):
        convert(values, Outer, "my.json")


def test_a_number_that_is_null_is_undefined():
    found = read({"inner": [{"count": 1, "score": None, "later": 3}]}, Outer)
    assert math.isnan(found.inner[0].score)
    assert read({"count": 1, "score": math.inf}, Inner).score == math.inf


def test_parts_of_a_recipe_in_python_are_those_of_its_classes():
    with pytest.raises(InputError, match=r"recipe.model is \{\}: give a ModelRecipe"):
        check_recipe(replace(recipe("zinc"), model={}))
    with pytest.raises(InputError, match=r"recipe\.data is None: give a DataRecipe"):
        check_recipe(replace(recipe("zinc"), data=None))
    node = replace(recipe("zinc").model.node, sizes=[28])  # a list stands for a tuple
    check_recipe(replace(recipe("zinc").model, node=node))


def test_names_of_tables_become_names():
    assert usable_name("my data (1)", "table") == "my data (1)"
    assert usable_name("..\x1b[2J/evil", "table") == "_[2J_evil"
    assert usable_name("-", "table") == "table"
    assert len(usable_name("x" * 300, "table")) == 240


def test_files_without_a_kind_describe_a_ckgcn():
    saved = Path(__file__).parents[1] / "results" / "zinc" / "recipe.json"
    assert "kind" not in json.loads(saved.read_text())["model"]
    zinc = recipe("zinc")
    # Nor do they have a flow, which sources received in then; the molecules are undirected.
    assert from_json(saved.read_text(), str(saved)) == replace(zinc, model=replace(zinc.model, flow="target_to_source"))


def test_each_kind_has_values_of_its_own():
    values = json.loads(to_json(recipe("zinc")))
    assert values["model"]["kind"] == "ckgcn"
    values["model"]["kind"] = "ckgnc"
    with pytest.raises(InputError, match=r"There is no model 'ckgnc': did you mean ckgcn\?"):
        from_json(json.dumps(values), "my.json")
    with pytest.raises(InputError, match=r"model.kind cannot be set to 'gin' alone.*choose a recipe of that kind"):
        with_value(recipe("zinc"), "model.kind=gin")
    assert with_value(recipe("zinc"), "model.kind=ckgcn") == recipe("zinc")
    with pytest.raises(InputError, match="no model 'gin'"):
        build_model(replace(recipe("zinc").model, kind="gin"))
    bare = ModelRecipe(
        kind="ckgcn",
        width=8,
        node=recipe("zinc").model.node,
        edge=recipe("zinc").model.edge,
        head=recipe("zinc").model.head,
    )
    with pytest.raises(InputError, match="whose values are a CKGCNRecipe, not a ModelRecipe"):
        build_model(bare)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 0}, "width is 0: give at least 1"),
        ({"blocks": 0}, "blocks is 0: give at least 1"),
        ({"steps": 0}, "model.steps is 0: give at least 1"),
        ({"dropout": "much"}, "dropout is 'much': give a number"),
        ({"head": replace(recipe("zinc").model.head, outputs=0)}, "head.outputs is 0: give at least 1"),
    ],
)
def test_a_network_refuses_impossible_values(changes, words):
    with pytest.raises(InputError, match=words):
        CKGCN(replace(recipe("zinc").model, **changes))


def test_the_papers_figure_is_not_shown_beside_another_metric_or_other_data():
    assert with_value(recipe("zinc"), "data.name=mine.npz").paper_test == ()
    assert with_value(recipe("zinc"), "training.metric=rmse").paper_test == ()
    assert with_value(recipe("zinc"), "training.metric=mae") == recipe("zinc")


def test_resistances_take_no_steps():
    CKGCN(replace(recipe("zinc").model, encoding="rd", steps=0))


def test_broken_files_are_refused():
    with pytest.raises(InputError, match="is not JSON"):
        from_json("{", "my.json")
    values = json.loads(to_json(recipe("zinc")))
    with pytest.raises(InputError, match=r"my.json.model has no value 'depth'"):
        from_json(json.dumps({**values, "model": {**values["model"], "depth": 3}}), "my.json")
    del values["training"]
    with pytest.raises(InputError, match="lacks training"):
        from_json(json.dumps(values), "my.json")
    with pytest.raises(InputError, match="give a group of values"):
        from_json("[]", "my.json")
    assert replace(recipe("zinc"), name="mine").name == "mine"
