"""Covers `ckgconv.studies.groups`."""

import json
from dataclasses import replace

import pytest
from records import write_run, write_runs

from ckgconv import InputError, recipe
from ckgconv.recipes.variant import changed
from ckgconv.studies.compare import compare

DATA = {"name": "zinc", "given": False, "graphs": 9, "nodes": 90, "edges": 180, "train": 3, "val": 3, "test": 3}


def test_groups_of_seeds_are_told_apart(tmp_path):
    narrow = changed(recipe("zinc"), width=32)
    paths = write_runs(tmp_path, "a", [0.05, 0.06, 0.055]) + write_runs(
        tmp_path, "b", [0.08, 0.085, 0.09], chosen=narrow
    )
    report = compare(paths)
    assert report.title == (
        "Best mean: zinc (model.width 64), test mae 0.0550 ± 0.0050; told apart from zinc (model.width 32)"
    )
    first, second = report.rows
    assert first[:6] == ("zinc (model.width 64)", "3", "0.2250 ± 0.0000", "0.0550 ± 0.0050", "best mean", 1000)
    assert first[6:] == (2.0, 10.0, 50)
    # Welch: t = 0.03/√(2 · 0.005²/3) = 7.348, 4 degrees of freedom.
    assert report.values["tests"][0]["p"] == pytest.approx(0.00183, abs=1e-5)
    assert second[4] == "told apart, p = 0.0018"
    assert [run["seed"] for run in report.values["runs"]] == [0, 1, 2, 0, 1, 2]
    assert report.seeds == (0, 1, 2)


def test_groups_are_not_told_apart_by_chance(tmp_path):
    grit = recipe("zinc-grit")
    paths = write_runs(tmp_path, "a", [0.05, 0.06, 0.055]) + write_runs(
        tmp_path, "b", [0.052, 0.061, 0.057], chosen=grit
    )
    report = compare(paths)
    assert "; not told apart from zinc-grit" in report.title
    assert report.rows[1][4].startswith("not told apart, p = 0.")


def test_more_than_two_groups_are_compared_pair_by_pair(tmp_path):
    paths = [
        *write_runs(tmp_path, "a", [0.05, 0.06]),
        *write_runs(tmp_path, "b", [0.5, 0.52], chosen=changed(recipe("zinc"), width=32)),
        *write_runs(tmp_path, "c", [0.09], chosen=recipe("zinc-grit")),
    ]
    report = compare(paths)
    assert len(report.values["tests"]) == 3
    assert "told apart from zinc (model.width 32), no test against zinc-grit" in report.title
    assert any(
        "| zinc (model.width 64) | zinc-grit | no test: it needs 2 finished runs of each |" in n for n in report.notes
    )


def test_unfinished_runs_are_shown_as_such(tmp_path):
    paths = [
        *write_runs(tmp_path, "a", [0.05, None]),
        write_run(tmp_path / "b", 7, None, recipe("zinc-grit"), epochs=0),
    ]
    report = compare(paths)
    assert [row[1] for row in report.rows] == ["1 + 1 unfinished", "0 + 1 unfinished"]
    assert [run["state"] for run in report.values["runs"]] == [
        "finished",
        "unfinished: 4 of 2000 epochs",
        "unfinished: 0 of 2000 epochs",
    ]
    assert report.rows[1][2:4] == (None, None)
    only = compare([paths[1], paths[2]])
    assert only.title == "2 recipes by mae: no best one"
    assert only.rows[0][2] == "0.2250 so far"
    untested = write_run(tmp_path / "c", 0, None, data={**DATA, "test": 0, "digest": "x"})
    assert compare([paths[0], untested]).values["runs"][1]["state"] == "no test split: 4 of 2000 epochs"
    undefined = write_run(tmp_path / "d", 0, None, epochs=2000)
    report = compare([paths[0], undefined])
    assert report.values["runs"][1]["state"] == "finished, no test metric"
    assert report.rows[0][1] == "1 + 1 untested"


def test_folds_are_one_group_and_other_data_is_not_tested(tmp_path):
    base = recipe("zinc")
    folds = [
        write_run(
            tmp_path / f"fold{fold}",
            0,
            0.1 + fold / 100,
            replace(base, data=replace(base.data, folds=3, fold=fold)),
            data={**DATA, "digest": str(fold)},
        )
        for fold in range(3)
    ]
    others = write_runs(tmp_path, "b", [0.2, 0.21], data={**DATA, "digest": "other"})
    report = compare([*folds, *others])
    assert [row[1] for row in report.rows] == ["3", "2"]
    assert report.rows[1][4] == "no test: they were not tested on the same data"


def test_runs_tested_on_other_data_have_no_best_one(tmp_path):
    few = write_run(tmp_path / "few", 0, 0.3, recipe("zinc-grit"), data={**DATA, "digest": "few"})
    many = write_run(tmp_path / "many", 0, 0.1, data={**DATA, "digest": "many"})
    report = compare([few, many])
    assert report.title == "2 recipes by mae, tested on other data: no best one"
    assert report.rows[1][4].startswith("no test")


def test_records_of_earlier_versions_join_the_group(tmp_path):
    """Without kind, flow and later fields."""
    old = write_run(tmp_path / "old", 1, 0.07)
    record = json.loads((old / "record.json").read_text())
    for name in ("kind", "flow"):
        del record["recipe"]["model"][name]
    del record["recipe"]["given"]
    (old / "record.json").write_text(json.dumps(record))
    report = compare([write_run(tmp_path / "new", 0, 0.06), old / "record.json"])
    assert report.title == "zinc: test mae 0.0650 ± 0.0071 over 2 runs"
    assert report.rows[0][4] is None


def test_a_recipe_of_a_kind_that_is_not_installed_is_compared_as_it_is(tmp_path):
    strange = write_run(tmp_path / "strange", 0, 0.1)
    record = json.loads((strange / "record.json").read_text())
    record["recipe"]["model"]["kind"] = "of a package"
    (strange / "record.json").write_text(json.dumps(record))
    assert len(compare([strange, write_run(tmp_path / "ours", 0, 0.2)]).rows) == 2


def test_a_metric_of_ones_own_has_no_known_direction(tmp_path):
    grit = recipe("zinc-grit")
    paths = write_runs(tmp_path, "a", [0.5, 0.6], metric="mine") + [
        write_run(tmp_path / f"b{seed}", seed, 0.7 + seed / 100, grit, metric="mine") for seed in range(2)
    ]
    report = compare(paths)
    assert report.title == "2 recipes by mine: no best one"
    assert 0 < report.values["tests"][0]["p"] < 1
    assert any("| zinc | zinc-grit | not told apart, p = 0." in note for note in report.notes)


def test_equal_runs_are_not_tested(tmp_path):
    paths = write_runs(tmp_path, "a", [0.5, 0.5]) + write_runs(tmp_path, "b", [0.6, 0.6], chosen=recipe("zinc-grit"))
    assert "no run differs" in compare(paths).rows[1][4]


def test_a_single_epoch_is_seen(tmp_path):
    one, other = (write_run(tmp_path / name, 0, 0.1, recipe(name), epochs=1) for name in ("zinc", "zinc-grit"))
    for axes in compare([one, other]).figure.axes[1:]:
        assert [line.get_marker() for line in axes.get_lines()] == ["o", "o"]
        low, high = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [1]


def test_wrong_input_is_a_sentence(tmp_path):
    one, other = write_runs(tmp_path, "a", [0.5, 0.6])
    with pytest.raises(InputError, match="1 run was given: give at least two"):
        compare([one])
    with pytest.raises(InputError, match=r"cannot be read as text .* give the folder of a run"):
        compare([one, tmp_path / "nowhere"])
    with pytest.raises(InputError, match="was given twice"):
        compare([one, one])
    with pytest.raises(InputError, match=r"their metric \(mae and accuracy\): compare runs of the same metric"):
        compare([one, write_run(tmp_path / "m", 0, 0.5, metric="accuracy")])
    with pytest.raises(InputError, match=r"differ in their data set \(zinc and pattern\)"):
        compare([other, write_run(tmp_path / "d", 0, 0.5, recipe("pattern"), metric="mae")])
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "record.json").write_text("[]")
    with pytest.raises(InputError, match="is not the record of a run"):
        compare([one, tmp_path / "odd"])
