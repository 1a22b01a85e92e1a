"""Cells that a spreadsheet takes as text."""

import pytest

from ckgconv.data.spreadsheet import as_text


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "\r=1", "-1,2,3"])
def test_formulas_are_texts(cell):
    assert as_text(cell) == f"'{cell}"


@pytest.mark.parametrize(
    "cell", ["-1.5", "+3", "-1e-05", "-inf", "nan", "-", "=", "", "CCO", "[Na+]", "C=C", "-.5", "-2,48", "+,5e3"]
)
def test_other_cells_stay(cell):
    assert as_text(cell) == cell
