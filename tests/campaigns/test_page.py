"""The page: what is compared, what is shown before a campaign is final, and where every number comes from. Covers
`ckgconv.campaigns.row`.
"""

import json
import re

import pytest
from campaign_files import adopted
from records import write_run

from ckgconv.campaigns.page import write_campaign_page

SHORT = ["training.epochs=4", "training.warmup_epochs=0"]


def write(folder, tests: list[float | None], vals: list[float] | None = None) -> None:
    """A record for each run of a campaign, in the order of its file."""
    for place, (planned, test) in enumerate(zip(folder.campaign().runs(), tests, strict=True)):
        path = write_run(folder.run(planned), planned.seed, test, planned.resolved(), precision=planned.precision)
        if vals is not None:
            record = json.loads((path / "record.json").read_text())
            record["best"]["val"] = vals[place]
            (path / "record.json").write_text(json.dumps(record))


def cells(page: str) -> list[dict[str, str]]:
    """The rows of the table, by column."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def test_a_final_page_has_tests_printed_numbers_and_the_record_of_every_seed(tmp_path):
    grid = {"recipes": ["zinc", "zinc-grit"], "seeds": [0, 1], "changes": [SHORT]}
    folder = adopted(tmp_path, final=True, grid=grid)
    write(folder, [0.060, 0.062, 0.050, 0.051])
    report = write_campaign_page(folder)
    assert report.figure is not None
    page = (tmp_path / "README.md").read_text()
    first, second = cells(page)
    assert (first["recipe and changes"], first["n"], first["test"]) == ("zinc", "2", "0.0610 ± 0.0014")
    assert first["paper"] == "0.059 ± 0.003, unchanged"
    assert first["against the paper"] == "–"  # the recipe has fewer epochs
    assert first["against the first"] == "the first"
    assert re.fullmatch(r"better, p = 0\.0\d+", second["against the first"])
    assert "Shared by all runs: `training.epochs=4`, `training.warmup_epochs=0`, precision 32." in page
    assert "declared final" in page
    links = re.findall(r"\]\((runs/[^)]+)\)", page)
    assert len(links) == 4
    assert all((tmp_path / link).exists() for link in links)
    table = json.loads((tmp_path / "table.json").read_text())
    assert [run["test"] for row in table["values"]["rows"] for run in row["runs"]] == [0.060, 0.062, 0.050, 0.051]
    assert str(tmp_path) not in (tmp_path / "table.json").read_text() + page


def test_before_a_campaign_is_final_validation_is_all_that_is_shown(tmp_path):
    grid = {"recipes": ["zinc"], "seeds": [0, 1], "changes": [SHORT, [*SHORT, "model.width=32"]]}
    folder = adopted(tmp_path, grid=grid)
    write(folder, [0.123456] * 4, vals=[0.5, 0.6, 0.55, 0.62])  # someone tested the runs by hand
    write_campaign_page(folder)
    page = (tmp_path / "README.md").read_text()
    first, second = cells(page)
    assert not {"test", "paper", "against the paper"} & set(first)
    assert (first["recipe and changes"], first["val"]) == ("zinc", "0.5500 ± 0.0707")
    assert second["recipe and changes"] == "zinc model.width=32"
    assert second["against the first"].startswith("not told apart, p = 0.")
    assert "no test metric has been computed" in page
    assert "0.1234" not in page + (tmp_path / "table.json").read_text()


def test_rows_are_judged_by_the_first_further_metric_after_the_last_epoch(tmp_path):
    asked = [*SHORT, 'training.metrics=["trimmed_mae"]']
    changes = [asked, [*asked, "model.width=32"], [*SHORT, "model.width=16"]]
    folder = adopted(tmp_path, grid={"recipes": ["zinc"], "seeds": [0, 1], "changes": changes})
    trimmed = iter([0.060, 0.061, 0.050, 0.051])
    for planned in folder.campaign().runs():
        found = {"val": {"trimmed_mae": next(trimmed)}} if planned.resolved().training.metrics else None
        ends = {"last": {"epochs": 1, "val": 0.4} | ({"metrics": found} if found else {})}
        write_run(folder.run(planned), planned.seed, None, planned.resolved(), precision="32", **ends)
    write_campaign_page(folder)
    first, second, third = cells((tmp_path / "README.md").read_text())
    assert (first["trimmed_mae, last"], first["trimmed_mae, averaged"]) == ("0.0605 ± 0.0007", "–")
    assert re.fullmatch(r"better, p = 0\.00\d+", second["against the first"])
    assert third["against the first"] == "no test: it is judged by mae, the first by trimmed_mae"
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["values"]["rows"][0]["runs"][0]["metrics"] == {"last": {"val": {"trimmed_mae": 0.060}}}


def test_a_final_page_is_judged_by_the_metric_and_shows_further_ones_of_the_test(tmp_path):
    changes = [[*SHORT, 'training.metrics=["trimmed_mae"]']]
    folder = adopted(tmp_path, final=True, grid={"recipes": ["zinc"], "seeds": [0], "changes": changes})
    (planned,) = folder.campaign().runs()
    last = {
        "epochs": 1,
        "val": 0.4,
        "test": 0.3,
        "metrics": {"val": {"trimmed_mae": 0.06}, "test": {"trimmed_mae": 0.05}},
    }
    write_run(folder.run(planned), 0, 0.07, planned.resolved(), precision="32", last=last)
    report = write_campaign_page(folder)
    (row,) = cells((tmp_path / "README.md").read_text())
    assert (row["test"], row["test trimmed_mae, last"], row["test trimmed_mae, averaged"]) == ("0.0700", "0.0500", "–")
    assert report.figure.axes[0].get_xlabel().startswith("zinc: test mae")


@pytest.mark.parametrize("final", [True, False])
def test_what_runs_end_with_is_shown_and_their_tests_only_where_final(tmp_path, final):
    folder = adopted(tmp_path, final=final, grid={"recipes": ["zinc"], "seeds": [0, 1, 2], "changes": [SHORT]})
    for planned in folder.campaign().runs():
        tenth = planned.seed / 10
        ends = {
            "last": {"epochs": 1, "val": 0.4 + tenth, "test": 0.7171 + tenth},
            "averaged": {"epochs": 1, "val": 0.3 + tenth, "test": 0.6161 + tenth},
        }
        ends = ends if planned.seed < 2 else {}  # a record of an earlier version
        write_run(folder.run(planned), planned.seed, 0.5, planned.resolved(), precision="32", **ends)
    write_campaign_page(folder)
    page, table = ((tmp_path / name).read_text() for name in ("README.md", "table.json"))
    (row,) = cells(page)
    assert row["val, averaged"] == "0.3500 ± 0.0707, n = 2"
    runs = json.loads(table)["values"]["rows"][0]["runs"]
    assert [run["averaged"]["val"] for run in runs] == [0.3, 0.4, None]
    if final:
        assert (row["test, last"], row["test, averaged"]) == ("0.7671 ± 0.0707, n = 2", "0.6661 ± 0.0707, n = 2")
        assert runs[0]["last"] == {"val": 0.4, "test": 0.7171}
    else:
        assert "0.7671" not in page + table
        assert "test" not in {*runs[0], *runs[0]["last"], *row}


def test_data_sets_have_rows_of_their_own_and_single_seeds_no_test(tmp_path):
    folder = adopted(tmp_path, final=True, grid={"recipes": ["zinc", "mnist", "zinc-grit"], "changes": [SHORT]})
    write(folder, [0.06, 0.98, 0.05])
    write_campaign_page(folder)
    rows = cells((tmp_path / "README.md").read_text())
    assert [row["recipe and changes"] for row in rows] == ["zinc", "zinc-grit", "mnist"]
    assert [row["metric"] for row in rows] == ["mae", "mae", "accuracy"]
    assert rows[1]["against the first"] == "no test: it needs 2 finished runs of each"
    assert rows[2]["against the first"] == "the first"


@pytest.mark.parametrize(
    ("tests", "says"),
    [([0.058, 0.060], "not told apart, p = "), ([0.2, 0.21], "worse, p = "), ([0.01, 0.011], "better")],
)
def test_an_unchanged_recipe_is_compared_with_the_paper(tmp_path, tests, says):
    folder = adopted(tmp_path, final=True, grid={"recipes": ["zinc"], "seeds": [0, 1], "changes": [[]]})
    for planned, test in zip(folder.campaign().runs(), tests, strict=True):
        write_run(folder.run(planned), planned.seed, test, planned.resolved(), epochs=2000)
    write_campaign_page(folder)
    (row,) = cells((tmp_path / "README.md").read_text())
    assert row["paper"] == "0.059 ± 0.003"
    assert row["against the paper"].startswith(says)


def test_a_page_before_anything_is_trained_and_with_unfinished_and_failed_runs(tmp_path):
    folder = adopted(tmp_path, grid={"seeds": [0, 1, 2]})
    write_campaign_page(folder)
    page = (tmp_path / "README.md").read_text()
    assert page.startswith("# A small campaign: 3 waiting")
    assert cells(page)[0]["records"] == "–"
    first, second, third = folder.campaign().runs()
    write_run(folder.run(first), 0, None, first.resolved(), epochs=2)
    write_run(folder.run(third), 2, None, third.resolved(), epochs=3)
    folder.write_failures({second.name: "No luck."})
    write_campaign_page(folder)
    page = (tmp_path / "README.md").read_text()
    assert f"- {second.name} failed: No luck." in page
    assert f"- {first.name}: stopped after 2 of 3 epochs" in page
    assert cells(page)[0]["n"] == "1"


def test_a_run_that_diverged_is_named_and_not_counted(tmp_path):
    folder = adopted(tmp_path, grid={"recipes": ["zinc"], "seeds": [0, 1, 2], "changes": [SHORT]})
    write(folder, [None] * 3, vals=[0.5, None, 0.6])  # null: NaN
    write_campaign_page(folder)
    page = (tmp_path / "README.md").read_text()
    (row,) = cells(page)
    assert (row["n"], row["val"]) == ("2", "0.5500 ± 0.0707")
    assert f"- {folder.campaign().runs()[1].name}: done after 4 of 4 epochs, without a finite metric" in page


def test_a_page_without_an_ended_run_names_nothing_that_computed_it(tmp_path):
    write_campaign_page(adopted(tmp_path, grid={"recipes": ["zinc"], "seeds": [0, 1], "changes": [SHORT]}))
    page = (tmp_path / "README.md").read_text()
    assert page.endswith("from what is kept: no run has ended.\n")
    assert cells(page)[0]["n"] == "0"
