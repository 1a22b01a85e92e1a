"""A folder of explanations: tables of every row, substructures, drawings."""

import csv
from dataclasses import replace

import pytest
from known_runs import run_of, small_recipe

from ckgconv import InputError
from ckgconv.explanation import Explainer
from ckgconv.explanation.folder import explain_all, write_explained


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_tables_and_drawings(run, tmp_path):
    ticks = []
    explained = explain_all(Explainer(run), ["CCO", "=cmd()", "CC"], ticks.append)
    found = write_explained(tmp_path / "out", explained)
    assert ticks == [1, 1, 1]
    assert [each.n for each in found]
    rows = rows_of(tmp_path / "out" / "molecules.csv")
    assert [bool(row["reason"]) for row in rows] == [False, True, False]
    assert rows[1]["smiles"] == "'=cmd()"  # no formula for a spreadsheet
    assert rows[0]["adds up"] == "yes"
    parts = rows_of(tmp_path / "out" / "contributions.csv")
    own = [row for row in parts if row["row"] == "1"]
    assert [row["what"] for row in own] == ["atom"] * 3 + ["bond"] * 2
    total = sum(float(row["contribution"]) for row in own)
    assert total == pytest.approx(float(rows[0]["sum of contributions"]), abs=1e-4)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"molecule-1.svg", "molecule-3.svg", "substructures.csv", "substructures.svg"} <= names
    assert "molecule-2.svg" not in names


def test_a_file_in_place_of_the_folder_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        write_explained(tmp_path / "file", explain_all(Explainer(run), ["CC"]))


def test_rows_with_a_reason_and_own_columns(tmp_path):
    recipe = small_recipe(graph_features=1)
    run = run_of(replace(recipe, data=replace(recipe.data, features=("ph",))))
    explained = explain_all(Explainer(run), ["CCO", "CC"], features=[[1.0], [2.0]], known=["", "It is no row."])
    assert explained.reasons == ["", "It is no row."]
    write_explained(tmp_path, explained)
    lines = (tmp_path / "contributions.csv").read_text().splitlines()
    assert [line.split(",")[2] for line in lines].count("column ph") == 1
