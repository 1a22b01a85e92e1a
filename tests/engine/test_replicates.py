"""Runs on a table with weights, classes, further metrics and several seeds of its split.

Covers `ckgconv.engine.replicates` and `ckgconv.engine.further_metrics`.
"""

import json
from dataclasses import replace

import pytest

from ckgconv import InputError, open_run, predict_smiles, recipe, train
from ckgconv.cli.table_options import TableOptions, table_recipe
from ckgconv.cli.task_options import TaskOptions
from ckgconv.engine.output_names import class_columns, most_probable, output_names
from ckgconv.engine.replicates import replicate_recipe, train_replicates
from ckgconv.recipes import with_value
from ckgconv.recipes.molecules import fitting

SMALL = ("model.width=4", "model.blocks=1", "model.steps=2", "training.epochs=1", "training.warmup_epochs=0")


@pytest.fixture
def chosen(tmp_path):
    rows = [f"{'C' * (row % 9 + 1)}{'ON'[row % 2]},{row % 5}.5,{'ab'[row % 2]},{row % 3}" for row in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["smiles,y,kind,w", *rows, "xx,1,a,1"]) + "\n")
    found = table_recipe(tmp_path / "t.csv", TableOptions(target=["y", "kind"], weight_column="w"))
    found = TaskOptions(metrics=["mixed_score", "rmse", "accuracy"], class_balance=True).applied(found)
    for setting in SMALL:
        found = with_value(found, setting)
    return fitting(found)


def test_replicates_split_by_other_seeds_and_keep_all_metrics(chosen, tmp_path):
    found = train_replicates(chosen, 2, tmp_path / "runs", device="cpu")
    assert [run.recipe.data.split_seed for run in found.runs] == [0, 1]
    kept = json.loads((tmp_path / "runs" / "replicates.json").read_text())
    assert kept["tests"] == [run.record.test for run in found.runs]
    assert kept["tested"]["mean"] == pytest.approx(sum(kept["tests"]) / 2)
    assert set(kept["metrics"]) == {"rmse", "accuracy"}
    folder = tmp_path / "runs" / "replicate1"
    assert json.loads((folder / "rows.json").read_text())["unused"] == 1
    run = open_run(folder, "cpu")
    assert run.record.metrics == found.runs[1].record.metrics
    assert set(run.record.metrics) == {"val", "test"}
    assert run.evaluate("test") == pytest.approx(run.record.test)
    predicted = predict_smiles(run, ["CCO", "xx"])
    assert predicted.values[1] is None
    assert sum(predicted.values[0][1:]) == pytest.approx(1)


def test_outputs_have_the_names_of_targets_and_classes(chosen):
    assert output_names(chosen) == ("y", "kind_a", "kind_b")
    assert class_columns(chosen) == {"kind": (1, ("a", "b"))}
    assert output_names(recipe("zinc")) == ("prediction",)
    assert most_probable(chosen, [[1.0, 0.2, 0.8], None]) == {"kind": ["b", ""]}


def test_weights_change_what_is_learned_and_the_identity_of_the_data(chosen):
    weighted = train(chosen, device="cpu")
    plain = train(replace(chosen, data=replace(chosen.data, weight_column="")), device="cpu")
    assert weighted.record.epochs[0].train_loss != plain.record.epochs[0].train_loss
    assert weighted.record.data.digest != plain.record.data.digest


def test_splits_that_no_seed_changes_have_no_replicates(chosen):
    with pytest.raises(InputError, match="'scaffold', which no seed changes"):
        replicate_recipe(replace(chosen, data=replace(chosen.data, split="scaffold")), 1)


def test_replicates_that_never_began_are_not_resumed(chosen, tmp_path):
    with pytest.raises(InputError, match="none holds no run to resume: start it with resume=False"):
        train_replicates(chosen, 2, tmp_path / "none", resume=True, device="cpu")
    assert not (tmp_path / "none").exists()
