import math

import pytest
import torch

from ckgconv import InputError
from ckgconv.data import load
from ckgconv.data.table_targets import class_names, table_targets
from ckgconv.data.tables import read_table
from ckgconv.recipe import DataRecipe


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("smiles,y,kind,flag,number\nC,1.5,b,true,10\nCC,,a,False,9\nCCC,2,,,10\nCCCC,3,b,true,\n")
    return file


def test_classes_have_the_numbers_of_the_recipe(path):
    table = read_table(path)
    assert class_names(table, "kind") == ("a", "b")
    assert class_names(table, "number") == ("9", "10")
    recipe = DataRecipe(str(path), targets=("kind",), classes=(("a", "b"),))
    assert table_targets(table, recipe).tolist() == [1, 0, -1, 1]
    with pytest.raises(InputError, match=r"Line 3 .* 'a' in column 'kind', which is none of the 2 classes"):
        table_targets(table, DataRecipe(str(path), targets=("kind",), classes=(("b", "c"),)))


def test_columns_of_different_kinds(path):
    recipe = DataRecipe(str(path), targets=("y", "kind", "flag"), classes=((), ("a", "b"), ()))
    nan = math.nan
    expected = torch.tensor([[1.5, 0, 1, 1], [nan, 1, 0, 0], [2, nan, nan, nan], [3, 0, 1, 1]])
    torch.testing.assert_close(table_targets(read_table(path), recipe), expected, equal_nan=True)


def test_what_is_no_column_of_classes_is_refused(path, monkeypatch):
    table = read_table(path)
    path.write_text("smiles,kind\nC,a\nCC,a\n")
    with pytest.raises(InputError, match="has 1 class"):
        class_names(read_table(path), "kind")
    monkeypatch.setattr("ckgconv.data.table_targets.MOST_CLASSES", 1)
    with pytest.raises(InputError, match="2 different texts, too many"):
        class_names(table, "kind")
    with pytest.raises(InputError, match="2 entries for 1 targets"):
        table_targets(table, DataRecipe(str(path), targets=("kind",), classes=((), ())))


def test_weights_of_rows(tmp_path):
    file = tmp_path / "t.csv"
    rows = [f"{'C' * (row + 1)},{row},{row / 2}" for row in range(12)]
    file.write_text("\n".join(["smiles,y,w", *rows]) + "\n")
    recipe = DataRecipe(str(file), targets=("y",), split="random", weight_column="w")
    data = load(recipe)
    assert torch.equal(data.target_weight * 2, data.y[:, 0])
    batch = data.batch(data.test)
    assert torch.equal(batch.target_weight * 2, batch.y[:, 0])
    for cell, words in (("-1", "zero or more"), ("", "zero or more"), ("x", "give a number"), ("inf", "finite")):
        file.write_text("\n".join(["smiles,y,w", *rows, f"O,1,{cell}"]) + "\n")
        with pytest.raises(InputError, match=f"Line 14 .*{words}"):
            load(recipe)
    file.write_text("\n".join(["smiles,y,w", *(row[: row.rindex(",")] + ",0" for row in rows)]) + "\n")
    with pytest.raises(InputError, match="Every weight"):
        load(recipe)
