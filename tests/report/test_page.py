"""The page of a run: complete, escaped, without anything from elsewhere, and drawn by a real browser."""

import base64
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from browser import photograph, visit

from ckgconv import InputError
from ckgconv.engine.members import write_members
from ckgconv.report import write_report

IMAGE = re.compile(r'src="data:image/svg\+xml;base64,([^"]+)"')


@pytest.fixture(scope="module")
def page(run):
    return write_report(run)


def test_a_browser_shows_all_of_it_and_runs_nothing(page, tmp_path):
    seen = visit(page.as_uri(), tmp_path)
    assert seen.complaints == []
    for name in ("data", "splits", "training", "predictions", "uncertainty", "worst", "explanations", "settings"):
        assert f'<section id="{name}">' in seen.document, name
    assert "<script>" not in seen.document
    assert "&lt;script&gt;alert(1)&lt;/script&gt;$x^" in seen.document
    assert "&lt;img src=x&gt;" in seen.document  # the SMILES of a row that was left out
    photograph(page.as_uri(), tmp_path / "page.png", tmp_path)


def test_nothing_is_loaded_from_elsewhere(page):
    text = page.read_text()
    sources = re.findall(r"""(?:src|href)=["']([^"']*)""", text)
    assert {each.split(":")[0] for each in sources if not each.startswith("#")} == {"data"}
    assert "url(http" not in text
    assert len(text) < 3_000_000
    drawings = [base64.b64decode(each) for each in IMAGE.findall(text)]
    assert len(drawings) > 8
    for svg in drawings:
        root = ElementTree.fromstring(svg)
        links = [value for each in root.iter() for name, value in each.attrib.items() if name.endswith("href")]
        assert all(value.startswith(("#", "data:")) for value in links)
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_rows_that_were_left_out_and_repeated_are_counted(page):
    text = page.read_text()
    assert "42</td>" in text  # rows
    assert re.search(r"left out, with a reason below</td><td>1<", text)
    assert re.search(r"occur in an earlier row too</td><td>1<", text)
    assert "--seed 0 --precision 32" in text


def test_labels_have_curves_and_a_reliability_diagram(labels_run, tmp_path):
    text = write_report(labels_run, tmp_path / "labels.html").read_text()
    assert "AUROC" in text
    assert "Brier score" in text
    assert '<section id="explanations">' in text
    assert "log-odds of active" not in text  # only inside drawings


def test_several_members_are_reported_together(run, tmp_path):
    text = write_report([run, replace(run)], tmp_path / "both.html").read_text()
    assert "2 members" in text
    assert "Member 1: " in text


def test_the_members_of_an_ensemble_are_trained_again_together(run, tmp_path):
    for name in ("member0", "member1"):
        (tmp_path / name).mkdir()
    write_members(tmp_path, 2)
    members = [replace(run, folder=tmp_path / name) for name in ("member0", "member1")]
    text = write_report(members, tmp_path / "report.html").read_text()
    assert f"{tmp_path}/member0/recipe.json --seed 0 --ensemble-size 2 --precision 32 --out {tmp_path}-again" in text
    assert f"ckgconv report {tmp_path}\n" in text.replace("</pre>", "\n")


def test_runs_of_other_data_have_a_shorter_page(run, tmp_path):
    from known_runs import run_of

    from ckgconv.recipes import recipe, with_value

    graphs = with_value(with_value(recipe("zinc"), "model.width=8"), "model.blocks=1")
    shorter = run_of(with_value(graphs, "model.steps=3"))
    with pytest.raises(InputError, match="without its data"):
        write_report(shorter, tmp_path / "a.html")
    data = run.learner.data.limited(3)
    data = replace(data, y=data.y[:, :1], x=data.x[:, :1] * 0, edge_attr=data.edge_attr[:, :1] * 0)
    shorter.learner.data = data
    text = write_report(shorter, tmp_path / "a.html").read_text()
    assert '<section id="settings">' in text
    assert '<section id="worst">' not in text


def test_a_run_in_memory_needs_a_path(run):
    with pytest.raises(InputError, match="in memory"):
        write_report(replace(run, folder=None))
    with pytest.raises(InputError, match="No run"):
        write_report([])


def test_what_training_counted_of_the_rows_is_shown(run, tmp_path):
    (tmp_path / "rows.json").write_text('{"rows": 42, "leak": 3, "stereo": 0, "x": "y"}')
    text = write_report(replace(run, folder=tmp_path)).read_text()
    assert re.search(r"molecules in several splits</td><td>3<", text)
    assert "defined stereochemistry" not in text
    (tmp_path / "rows.json").write_text("[broken")
    assert "several splits" not in write_report(replace(run, folder=tmp_path)).read_text()
