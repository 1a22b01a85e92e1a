import math

import pytest

from ckgconv import InputError
from ckgconv.data import load
from ckgconv.data.decimals import has_decimal_commas, looks_like_a_number, marks, parsed
from ckgconv.data.molecule_table import loaded_table
from ckgconv.data.row_report import row_report
from ckgconv.data.tables import read_table
from ckgconv.recipe import DataRecipe


@pytest.mark.parametrize(
    ("cells", "commas"),
    [
        (["1,5", "3", "-2,7e-3", "", "nan", ",5", "4,"], True),
        (["1,5", "1,250"], True),
        (["0,250", "0,125"], True),
        (["1.5", "3"], False),
        (["1", "2"], False),
        (["a,b", "1,5 mg"], False),
        ([], False),
    ],
)
def test_a_column_has_decimal_commas_where_one_cell_can_be_nothing_else(cells, commas):
    assert has_decimal_commas(cells, "Column 'y'") is commas


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1,5", "2.5"], r"Column 'y' has numbers with a decimal comma \(1,5\) and with a point \(2.5\): write all"),
        (["1,250", "3,600"], "Column 'y' has 1,250, in which the comma may separate thousands or decimals"),
        (["1,250,000", "3"], "may separate thousands"),
    ],
)
def test_what_cannot_be_told_is_refused(cells, words):
    with pytest.raises(InputError, match=words):
        has_decimal_commas(cells, "Column 'y'")


def test_numbers_and_names():
    assert (parsed("1,5", True), parsed(" 2.5 ")) == (1.5, 2.5)
    with pytest.raises(ValueError, match="1,5"):
        parsed("1,5")
    assert all(map(looks_like_a_number, ["1,5", "1.234,5", "1 000", "1'000", "1e5", "-,5", "inf"]))
    assert not any(map(looks_like_a_number, ["red", "a1", "", "50-00-0", "1,5 mg", "<0,5"]))
    assert (marks(["x", "1,5"]).comma, marks(["2.5"]).point, marks(["1,250"]).thousands) == ("1,5", "2.5", "1,250")


def test_targets_and_weights_with_decimal_commas_are_numbers_and_that_is_said(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{'C' * (n + 1)};{n},5;0,{n + 1};" for n in range(12)]
    path.write_text("\n".join(["smiles;y;w;z", *rows]) + "\n")
    recipe = DataRecipe(str(path), targets=("y",), weight_column="w", split="random")
    data = load(recipe)
    assert sorted(data.y[:, 0].tolist()) == [n + 0.5 for n in range(12)]
    assert data.target_weight.min() == pytest.approx(0.1)
    notes = row_report(loaded_table(recipe), recipe).notes()
    assert notes == [f"Column '{name}' of {path} has decimal commas: 1,5 is read as 1.5." for name in ("y", "w")]
    assert all(map(math.isnan, read_table(path).numbers("z")))


def test_a_text_among_decimal_commas_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("smiles;y\nC;1,5\nCC;<0,5\n")
    with pytest.raises(InputError, match=r"Line 3 of .* has '<0,5' in column 'y': give a number, or leave"):
        read_table(path).numbers("y")
