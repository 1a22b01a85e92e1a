import json

import pytest

from ckgconv import InputError
from ckgconv.studies import STUDIES, Options, Report, Study, conduct, study, write_page
from ckgconv.studies.report import markdown_table, new_figure, shown, spread


def tiny(options):
    figure = new_figure(2.0)
    figure.subplots().plot([1, 2])
    seeds = options.seeds or (0,)
    return Report(
        "Two is more than one", ("name", "paper", "ours"), [("a", 1.0, 2.0)], figure, ("A note.",), seeds=seeds
    )


TINY = Study("two and one", tiny, ("seeds",))


def test_a_page_holds_table_figure_and_where_the_numbers_come_from(tmp_path):
    report, provenance = conduct(TINY, Options(seeds=(4, 5)), ["study", "tiny", "--out", "a b"])
    write_page(tmp_path, report, provenance)
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["rows"] == [["a", 1.0, 2.0]]
    assert table["seeds"] == [4, 5]
    assert table["command"] == "ckgconv study tiny --out 'a b'"
    assert {"commit", "device", "versions", "seconds"} <= set(table)
    page = (tmp_path / "README.md").read_text()
    for part in (
        "# Two is more than one\n",
        "](figure.png)",
        "| a | 1 | 2 |",
        "A note.",
        "seeds 4, 5",
        table["command"],
    ):
        assert part in page
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_an_option_that_a_study_does_not_read_is_refused():
    with pytest.raises(InputError, match="--epochs was given, but this study does not read it"):
        conduct(TINY, Options(epochs=3), [])


def test_an_unknown_name_is_a_sentence_with_the_nearest():
    with pytest.raises(InputError, match="There is no study 'oversmooth': did you mean oversmoothing"):
        study("oversmooth")
    assert study("oversmoothing") is STUDIES["oversmoothing"]


def test_cells():
    assert [shown(cell) for cell in (None, 3, 0.123456, "x")] == ["–", "3", "0.1235", "x"]
    assert spread([50, 50, 50, 75, 75]) == "60 ± 12"
    assert markdown_table(("a", "b"), [(1, None)]) == "| a | b |\n| --- | --- |\n| 1 | – |"
