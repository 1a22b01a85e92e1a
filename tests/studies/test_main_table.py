"""Covers `ckgconv.studies.printed_table`."""

from dataclasses import replace

import pytest
from records import write_run, write_runs

from ckgconv import InputError, recipe
from ckgconv.recipes.variant import changed
from ckgconv.studies import Options
from ckgconv.studies.main_table import main_table
from ckgconv.studies.printed_table import DATA_SETS, PRINTED

COLUMNS = list(DATA_SETS)


def cells(report, method, data):
    return next(row for row in report.rows if row[0] == method)[1 + COLUMNS.index(data)]


def test_runs_are_next_to_the_printed_numbers(tmp_path):
    write_runs(tmp_path / "a", "zinc", [0.06, 0.062, 0.064])
    write_run(tmp_path / "b", 0, 0.8812, recipe("pattern-grit"))
    report = main_table(Options(runs=(tmp_path,)))
    assert report.columns[1:] == tuple(DATA_SETS.values())
    assert cells(report, "CKGCN", "zinc") == "0.059 ± 0.003"
    assert cells(report, "CKGCN, ours", "zinc") == "0.0620 ± 0.0020 (3)"
    assert cells(report, "GRIT, ours", "pattern") == "88.12 (1)"
    assert cells(report, "GRIT, ours", "zinc") is None
    names = [row[0] for row in report.rows]
    assert names.index("GRIT, ours") == names.index("GRIT") + 1
    assert report.title == "The paper's tables with 2 entries of ours: 0 of 1 tested differ from print"
    assert report.values["runs"]["ZINC, CKGCN"] == (0.06, 0.062, 0.064)


def test_every_network_of_the_papers_table_stands_below_its_row(tmp_path):
    methods = {"grit": "GRIT", "gps": "GPS", "gcn": "GCN", "pna": "PNA", "gatedgcn": "GatedGCN", "san": "SAN"}
    methods["graphormer"] = "Graphormer"
    for ending in methods:
        write_run(tmp_path / ending, 0, 0.1, recipe(f"zinc-{ending}"))
    report = main_table(Options(runs=(tmp_path,)))
    names = [row[0] for row in report.rows]
    for method in methods.values():
        assert names.index(f"{method}, ours") == names.index(method) + 1
        assert cells(report, f"{method}, ours", "zinc") == "0.1000 (1)"


def test_a_difference_is_told(tmp_path):
    write_runs(tmp_path, "zinc", [0.0750, 0.0752, 0.0751, 0.0753])
    assert main_table(Options(runs=(tmp_path,))).title.endswith("1 entry of ours: 1 of 1 tested differ from print")


def test_what_does_not_count_is_named(tmp_path):
    zinc = recipe("zinc")
    write_run(tmp_path / "counts", 0, 0.06)
    write_run(tmp_path / "unfinished", 1, None)
    write_run(tmp_path / "narrow", 2, 0.07, changed(zinc, width=32))
    write_run(tmp_path / "short", 3, 0.2, replace(zinc, training=replace(zinc.training, epochs=2)))
    write_run(tmp_path / "demo", 4, 0.3, recipe("zinc-demo"))
    write_run(tmp_path / "other", 5, 0.3, replace(zinc, data=replace(zinc.data, name="mine.csv")))
    write_run(tmp_path / "unknown", 6, 0.3, replace(zinc, name="zinc-of-a-package"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "record.json").write_text("{}")
    report = main_table(Options(runs=(tmp_path,)))
    assert cells(report, "CKGCN, ours", "zinc") == "0.0600 (1)"
    assert {reason: len(runs) for reason, runs in report.values["left_out"].items()} == {
        "unfinished": 1,
        "of a changed or shortened recipe": 2,
        "a demonstration": 1,
        "not of the paper's data sets": 1,
        "of a recipe that is not installed": 1,
        "cannot be read by this version": 1,
    }
    assert "unfinished: `" in report.notes[-1]


def test_a_copy_of_a_run_counts_once(tmp_path):
    write_run(tmp_path / "a", 0, 0.06)
    write_run(tmp_path / "b", 0, 0.06)
    write_run(tmp_path / "c", 1, 0.07)
    report = main_table(Options(runs=(tmp_path, tmp_path / "a")))
    assert cells(report, "CKGCN, ours", "zinc") == "0.0650 ± 0.0071 (2)"
    assert report.values["left_out"] == {}


def test_runs_of_one_seed_are_one_draw(tmp_path):
    write_run(tmp_path / "a", 0, 0.06)
    write_run(tmp_path / "b", 0, 0.07)
    write_run(tmp_path / "c", 1, 0.08)
    report = main_table(Options(runs=(tmp_path,)))
    assert report.values["runs"]["ZINC, CKGCN"] == (0.07, 0.08)
    assert report.values["left_out"] == {"of a seed that a later folder has": [str(tmp_path / "a")]}


def test_a_network_that_the_paper_lacks_has_a_row_at_the_end(tmp_path):
    write_run(tmp_path / "a", 0, 0.06, recipe("zinc-concatenate"))
    report = main_table(Options(runs=(tmp_path,)))
    assert report.rows[-1][:2] == ("concatenate, ours", "0.0600 (1)")


def test_without_runs_it_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="No finished run of an unchanged benchmark recipe is under"):
        main_table(Options(runs=(tmp_path,)))
    with pytest.raises(InputError, match="nowhere is not a folder"):
        main_table(Options(runs=(tmp_path / "nowhere",)))


def test_printed_numbers_are_those_of_the_recipes():
    """The recipes of the paper state their published figures themselves; accuracies there are no percentages."""
    for data, name in DATA_SETS.items():
        scale = 100 if float(PRINTED[name]["CKGCN"].split()[0]) > 1 else 1
        for method, ending in (("CKGCN", ""), ("GRIT", "-grit")):
            mean, deviation = recipe(data + ending).paper_test
            printed = [float(number) for number in PRINTED[name][method].split(" ± ")]
            assert [scale * mean, scale * deviation] == pytest.approx(printed), (name, method)
