import numpy as np
import pytest

from ckgconv import InputError
from ckgconv.estimators.inputs import feature_name, smiles_of, target_names, targets_of, values_of, weights_of


class Column(list):
    """What is needed of a series."""

    name = "logp"


class Table:
    """What is needed of a data frame."""

    def __init__(self, **columns):
        self.columns = list(columns)
        self.cells = columns

    def __getitem__(self, name):
        return self.cells[name]


@pytest.mark.parametrize(
    "given",
    [
        ["CCO", "CN"],
        ("CCO", "CN"),
        np.array(["CCO", "CN"]),
        np.array(["CCO", "CN"], dtype=object),
        np.array([["CCO"], ["CN"]]),
        [["CCO"], ["CN"]],
        Column(["CCO", "CN"]),
        Table(smiles=Column(["CCO", "CN"])),
    ],
)
def test_every_form_of_a_column_is_read(given):
    assert smiles_of(given) == ["CCO", "CN"]


def test_one_molecule_and_missing_ones():
    assert smiles_of("CCO") == ["CCO"]
    assert smiles_of(["C", None, float("nan")]) == ["C", "", ""]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "X has 0 samples"),
        (3, "X is a int"),
        ([1.5], r"X\[0\] is of type float, not text"),
        (["C", b"C"], r"X\[1\] is of type bytes"),
        (np.zeros((2, 2)), r"X has shape \[2, 2\]"),
        (Table(smiles=["C"], y=[1]), r"X has 2 columns \(smiles, y\): give the column of SMILES alone"),
        (np.array(["C"]).reshape(1, 1, 1), "Reshape your data"),
    ],
)
def test_what_is_no_column_of_smiles_is_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        smiles_of(given)


def test_names():
    assert feature_name(Table(smiles=["C"])) == "smiles"
    assert feature_name(["C"]) is None
    assert target_names([1.0], 1) == ("y",)
    assert target_names(Column([1.0]), 1) == ("logp",)
    assert target_names(Table(a=[1], b=[2]), 2) == ("a", "b")
    assert target_names(np.zeros((1, 2)), 2) == ("y0", "y1")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "the target y is None"),
        ([1.0], "X has 2 rows and y has 1"),
        (np.zeros((2, 1, 1)), r"y has shape \[2, 1, 1\]"),
        (np.zeros((2, 0)), "y has no column"),
    ],
)
def test_targets_of_another_shape_are_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        targets_of(given, 2)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["a", "b"], "y has dtype <U1: give numbers"),
        ([1.0, float("inf")], "y contains infinity, in row 1"),
        ([1j], "Complex data not supported"),
        (np.array([{}], dtype=object), "what is no number"),
    ],
)
def test_values_that_are_no_numbers_are_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        values_of(np.asarray(given))


def test_values_may_be_unknown():
    assert np.isnan(values_of(np.array([None, 1], dtype=object))).tolist() == [True, False]


def test_what_has_no_order_or_a_mask_is_refused():
    with pytest.raises(InputError, match="X is a set"):
        smiles_of({"C", "CC"})
    with pytest.raises(InputError, match="X has masked values"):
        smiles_of(np.ma.masked_array(["C", "CC"], [True, False]))
    with pytest.raises(InputError, match="y has masked values"):
        targets_of(np.ma.masked_array([1.0, 2.0], [True, False]), 2)
    assert targets_of(np.ma.masked_array([1.0, 2.0]), 2).tolist() == [1, 2]
    with pytest.raises(InputError, match="sample_weight has masked values"):
        weights_of(np.ma.masked_array([1.0, 2.0], [True, False]), 2)
