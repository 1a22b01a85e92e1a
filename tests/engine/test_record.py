"""Records: round trip, those of earlier versions, damaged ones, undefined numbers.

Covers `ckgconv.engine.machine`.
"""

import json
import math
import random
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from ckgconv import InputError, open_run, recipe
from ckgconv.engine.record import Best, Epoch, Record, load_record, new_record, read_record, write_record
from ckgconv.files import valid_json
from ckgconv.studies.outcomes import read_outcomes

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
OLD = {
    RESULTS / "zinc": (2000, Best(1300, 0.06644080352783203, 0.05981549072265625)),
    RESULTS / "zinc" / "second": (2000, Best(1355, 0.0703408660888672, 0.06594691467285156)),
    RESULTS / "zinc-demo" / "record.json": (10, Best(9, 0.3479794006347656, 0.3009848918914795)),
}


def example(**changes) -> Record:
    record = new_record(recipe("zinc"), 3, 1000, torch.device("cpu"), "bf16")
    record.epochs = [Epoch(place, 1.0 / (place + 1), 0.1 / 3, 1e-3, 0.25) for place in range(4)]
    record.best = Best(2, 0.1 / 3, 0.059)
    return replace(record, **changes)


def undefined() -> Record:
    return example(
        epochs=[Epoch(0, math.nan, math.inf, 1e-3, 0.5), Epoch(1, -math.inf, 0.5, 1e-3, 0.5)], best=Best(0, math.nan)
    )


@pytest.mark.parametrize("changes", [{}, {"best": None, "epochs": []}, {"at_once": 4}, {"commit": None}])
def test_what_is_written_is_read(tmp_path, changes):
    record = example(**changes)
    assert Record.from_json(record.to_json()) == record
    write_record(tmp_path, record)
    assert load_record(tmp_path) == load_record(tmp_path / "record.json") == read_record(tmp_path) == record


def test_keys_are_those_of_earlier_versions():
    written = example().to_json()
    assert set(example(at_once=2).to_json()) == {*written, "at_once"}
    old = json.loads((RESULTS / "zinc-demo" / "record.json").read_text())
    assert list(old) == list(written)
    assert set(old["epochs"][0]) == set(written["epochs"][0])
    assert set(old["best"]) == set(written["best"])


@pytest.mark.parametrize("path", OLD, ids=lambda path: str(path.relative_to(ROOT)))
def test_old_records_are_read_whole(path):
    epochs, best = OLD[path]
    record = load_record(path)
    assert (record.data_name, record.metric, record.seed) == ("zinc", "mae", 0)
    assert [epoch.epoch for epoch in record.epochs] == list(range(epochs))
    assert (record.best, record.test) == (best, best.test)
    file = path if path.is_file() else path / "record.json"
    assert record.to_json() == json.loads(file.read_text())


def test_old_checkpoints_and_studies_read_them():
    for folder in (RESULTS / "zinc", RESULTS / "zinc" / "second"):
        run = open_run(folder, device="cpu", precision="32")
        assert run.record.best == load_record(folder).best
        assert run.record.precision == "bf16"
        outcomes = read_outcomes((folder,))
        assert (outcomes.values, outcomes.paper) == ((OLD[folder][1].test,), (0.059, 0.003))


def test_numbers_of_an_unknown_recipe_are_read():
    values = example().to_json()
    values["recipe"] = {"name": "later", "data": {"name": "moon", "phase": 3}, "engine": ["warp"]}
    values["colour"] = "blue"
    values["best"]["mood"] = "good"
    record = Record.from_json(values)
    assert (record.recipe_name, record.data_name, record.test) == ("later", "moon", 0.059)
    assert record.recipe["engine"] == ["warp"]


def test_only_recipe_seed_and_metric_are_needed():
    record = Record.from_json({"recipe": {"name": "a", "data": {"name": "b"}}, "seed": 1, "metric": "mae"})
    assert (record.epochs, record.best, record.test, record.versions) == ([], None, None, {})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"seed": "3"}, "seed is '3', not a whole number"),
        ({"seed": True}, "seed is True, not a whole number"),
        ({"seed": None}, "seed is None, not a whole number"),
        ({"metric": 3}, "metric is 3, not a text"),
        ({"wall_s": "long"}, "wall_s is 'long', not a number"),
        ({"epochs": {}}, "epochs is {}, not a list"),
        ({"epochs": [{"epoch": 0}]}, "it lacks epochs[0].train_loss"),
        ({"epochs": [3]}, "epochs[0] is 3, not a group of values"),
        ({"best": []}, "best is [], not a group of values"),
        ({"best": {"epoch": 1.5, "val": 1}}, "best.epoch is 1.5, not a whole number"),
        ({"versions": {"torch": 2}}, "versions.torch is 2, not a text"),
        ({"recipe": "zinc"}, "recipe is 'zinc', not a group of values"),
        ({"recipe": {"name": "zinc"}}, "it lacks recipe.data.name"),
    ],
)
def test_a_damaged_field_is_named_in_a_sentence(tmp_path, damage, reason):
    (tmp_path / "record.json").write_text(json.dumps(example().to_json() | damage))
    with pytest.raises(InputError) as refusal:
        load_record(tmp_path)
    file = tmp_path / "record.json"
    assert str(refusal.value) == (
        f"{file} is not the record of a run ({reason}): give the folder that `ckgconv train` wrote."
    )
    assert read_record(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"zinc"', "{}", "\x00", "[" * 100_000])
def test_a_damaged_file_is_an_input_error(tmp_path, text):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(InputError, match=r"record\.json is not the record of a run \(.*\): give the folder that"):
        load_record(tmp_path)
    assert read_record(tmp_path) is None


def test_any_replaced_value_is_refused_or_read():
    """Whatever JSON replaces a value, `from_json` returns a record or raises InputError."""
    draw = random.Random(0)
    odd = [None, True, -1, 10**400, 1.5, "", "x", [], {}, [[]], [{}], {"epoch": []}]
    for _ in range(500):
        values = json.loads(json.dumps(example().to_json()))
        inside = draw.choice([values, values["best"], values["epochs"][1], values["recipe"], values["versions"]])
        inside[draw.choice(list(inside))] = draw.choice(odd)
        with suppress(InputError):
            assert isinstance(Record.from_json(values), Record)


def test_a_missing_record_is_an_input_error_or_none(tmp_path):
    with pytest.raises(InputError, match="cannot be read as text"):
        load_record(tmp_path / "nowhere")
    assert read_record(tmp_path) is None
    (tmp_path / "record.json").write_bytes(b"\xff\xfe")
    assert read_record(tmp_path) is None


def test_undefined_numbers_are_null_in_the_file_and_nan_in_memory(tmp_path):
    write_record(tmp_path, undefined())

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    values = json.loads((tmp_path / "record.json").read_text(), parse_constant=refuse)
    assert [epoch["train_loss"] for epoch in values["epochs"]] == [None, None]
    read = load_record(tmp_path)
    assert math.isnan(read.epochs[0].train_loss)
    assert math.isnan(read.epochs[0].val)
    assert read.epochs[1].val == 0.5
    assert math.isnan(read.best.val)
    assert read.test is None
    assert (tmp_path / "metrics.csv").read_text().splitlines()[1] == "0,nan,inf,0.001,0.5"


def test_bare_nan_of_earlier_versions_is_read(tmp_path):
    (tmp_path / "record.json").write_text(json.dumps(undefined().to_json()))
    read = load_record(tmp_path)
    assert math.isnan(read.epochs[0].train_loss)
    assert read.epochs[0].val == math.inf


def test_valid_json():
    assert valid_json({"a": [1, math.nan, (math.inf, "NaN")], "b": {"c": -math.inf}}) == (
        '{"a": [1, null, [null, "NaN"]], "b": {"c": null}}'
    )
    plain = asdict(recipe("zinc"))
    assert valid_json(plain, indent=1) == json.dumps(plain, indent=1)
