"""Covers `ckgconv.cli.table_options` and `ckgconv.cli.task_options`."""

from pathlib import Path

import pytest

from ckgconv import InputError, recipe
from ckgconv.cli.table_options import SplitType, TableOptions, TaskType, table_recipe
from ckgconv.cli.task_options import TaskOptions
from ckgconv.engine.recipe_checks import check_run


@pytest.fixture
def path(tmp_path):
    rows = ["C,1.5,1,red,2,true,train,g,1", "CC,2,0,green,0,false,val,g,2", "CCC,,,,,,test,h,0"]
    (tmp_path / "my table.csv").write_text("\n".join(["smiles,y,toxic,colour,grade,flag,split,g,w", *rows]) + "\n")
    return tmp_path / "my table.csv"


def of(path, *targets, **options):
    chosen = table_recipe(path, TableOptions(target=list(targets), **options))
    check_run(chosen)
    return chosen


def test_the_task_follows_from_the_cells(path):
    found = {name: of(path, name) for name in ("y", "toxic", "colour", "grade", "flag")}
    assert {name: each.training.loss for name, each in found.items()} == {
        **{"y": "huber", "toxic": "binary", "colour": "cross_entropy", "grade": "huber", "flag": "binary"}
    }
    assert found["y"].name == "my table"
    assert (found["colour"].data.classes, found["colour"].model.head.outputs) == ((("green", "red"),), 2)
    assert of(path, "grade", task_type=[TaskType.multiclass]).data.classes == (("0", "2"),)
    assert of(path, "toxic", task_type=[TaskType.regression]).training.metric == "mae"


def test_the_smiles_are_no_target(path):
    with pytest.raises(InputError, match="--target names 'smiles', the SMILES themselves"):
        of(path, "smiles")


def test_columns_of_different_kinds_are_mixed(path):
    chosen = of(path, "y", "toxic", "colour")
    training = chosen.training
    assert (training.loss, training.metric, training.scale_targets) == ("mixed", "mixed_score", True)
    assert (training.mixed, training.mixed_outputs) == (("huber", "binary", "cross_entropy"), (1, 1, 2))
    assert (chosen.model.head.outputs, chosen.data.classes) == (4, ((), (), ("green", "red")))
    given = TaskOptions(loss_function="focal", metrics=["mixed-score", "rmse", "accuracy"], class_balance=True)
    training = given.applied(chosen).training
    assert training.mixed == ("huber", "focal", "focal_cross_entropy")
    assert (training.metric, training.metrics, training.class_balance) == (
        *("mixed_score", ("rmse", "label_accuracy"), True),
    )
    types = [TaskType.regression, TaskType.multiclass]
    assert of(path, "y", "grade", task_type=types).data.classes == ((), ("0", "2"))


def test_splits_and_weights(path):
    data = of(path, "y", splits_column="split", weight_column="w").data
    assert (data.split, data.split_column, data.weight_column) == ("column", "split", "w")
    data = of(path, "y", group_column="g", split_sizes=[0.6, 0.2, 0.2]).data
    assert (data.split, data.group_column, data.split_sizes) == ("group", "g", (0.6, 0.2, 0.2))
    assert of(path, "y", split=SplitType.butina).data.split == "butina"
    assert of(path, "y").data.split == "random"


@pytest.mark.parametrize(
    ("targets", "options", "words"),
    [
        ([], {}, "No target was named"),
        (["y", "y"], {}, "given twice"),
        (["z"], {}, "no column 'z'"),
        (["y"], {"weight_column": "v"}, "no column 'v'"),
        (["y"], {"splits_column": "g"}, "'g' in column 'g': give train, val or test"),
        (["y"], {"splits_column": "split", "group_column": "g"}, "each splits the rows"),
        (["y"], {"splits_column": "split", "split": SplitType.random}, "leave out one"),
        (["y"], {"split": SplitType.group}, "--group-column"),
        (["y"], {"split_sizes": [0.5, 0.5]}, "give three"),
        (["y"], {"task_type": [TaskType.classification]}, "other values than 0 and 1"),
        (["colour"], {"task_type": [TaskType.regression]}, "'red' in column 'colour': give a number"),
        (["y", "toxic", "g"], {"task_type": [TaskType.regression] * 2}, "2 times for 3 targets"),
    ],
)
def test_wrong_options_are_refused(path, targets, options, words):
    with pytest.raises(InputError, match=words):
        of(path, *targets, **options)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["3.5", "3.5", ""], "Every known value of target 'y' in .*t.csv is 3.5, so that there is nothing to learn"),
        (["1", "1", "1"], "is 1, so that there is nothing to learn: choose another column"),
        (["true", "true", ""], "is 1, so that"),
        (["1.234,5", "2.345,6", "1"], "Line 2 .* has '1.234,5' in column 'y': give a number"),
        (["1,5", "<0,5", "<1"], "Line 3 .* has '<0,5' in column 'y'"),
        ([f"{n} mg" for n in range(30)], "30 different texts in 30 rows, such as '0 mg': give numbers, or --task-type"),
    ],
)
def test_columns_that_no_network_should_learn_are_refused(tmp_path, cells, words):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["smiles;y", *(f"C;{cell}" for cell in cells)]) + "\n")
    with pytest.raises(InputError, match=words):
        of(path, "y")


def test_decimal_commas_are_values_and_recurring_texts_classes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["smiles;y;z", *(f"C;{n},5;{n % 25} mg" for n in range(60))]) + "\n")
    assert of(path, "y").training.loss == "huber"
    assert of(path, "z").training.loss == "cross_entropy"
    assert of(path, "y", task_type=[TaskType.multiclass]).training.loss == "cross_entropy"


def test_the_column_of_smiles_may_be_written_in_another_case(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("SMILES,y\nC,1\nCC,2\n")
    options = TableOptions(target=["y"])
    chosen = table_recipe(path, options)
    assert chosen.data.smiles == "SMILES"
    assert options.said(chosen) == ["The SMILES are those of column 'SMILES'."]
    assert TableOptions(smiles="SMILES").said(chosen) == []
    path.write_text("SMILES,Smiles,y\nC,C,1\nCC,CC,2\n")
    with pytest.raises(InputError, match="has no column 'smiles', but SMILES, Smiles: name one of them with --smiles"):
        table_recipe(path, options)
    assert table_recipe(path, TableOptions(smiles="Smiles", target=["y"])).data.smiles == "Smiles"


def test_options_of_a_table_belong_to_a_table():
    with pytest.raises(InputError, match="--weight-column belongs to a table such as a CSV, not to 'zinc'"):
        TableOptions(weight_column="w").refuse("zinc")
    TableOptions().refuse("zinc")


def test_loss_and_metrics_of_any_recipe():
    zinc = recipe("zinc")
    assert TaskOptions().applied(zinc) == zinc
    training = TaskOptions(loss_function="mse", metrics=["R2", "rmse"]).applied(zinc).training
    assert (training.loss, training.metric, training.metrics) == ("mse", "r2", ("rmse",))
    for given, words in (
        ({"metrics": ["mae", "MAE"]}, "named twice"),
        ({"metrics": ["roc"]}, "'roc' is not one for values"),
        ({"loss_function": "bce"}, "'bce' is not one for values"),
    ):
        with pytest.raises(InputError, match=words):
            TaskOptions(**given).applied(zinc)
    with pytest.raises(InputError, match="no classes to balance"):
        check_run(TaskOptions(class_balance=True).applied(zinc))
    assert Path("runs").exists() is False
