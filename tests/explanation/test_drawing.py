"""Drawings are well-formed SVG with colours that mean what the bar says, whatever text they have."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from ckgconv import InputError, explain
from ckgconv.explanation.drawing import Picture, colour, draw, draw_grid, fitting, printable, rendered


def test_an_explained_molecule_parses_and_says_what_it_shows(run):
    svg = draw(explain(run, "CC(=O)Oc1ccccc1"), numbers=True)
    texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert "contribution to y" in texts
    assert any("baseline" in text for text in texts)
    assert [text[0] for text in texts if text[1:2].isdigit()] == ["−", "+"]


def test_what_is_read_beside_the_molecule_is_said(run):
    found = replace(explain(run, "CCO"), descriptors=3.0, features={"ph": -0.5})
    svg = draw(found)
    assert "contribution to y<" in svg
    assert "beside atoms and bonds: +2.5<" in svg


def test_long_names_leave_room_for_numbers(run):
    found = replace(
        explain(run, "CCO"), unit="measured log solubility in mols per litre", prediction=-4.57, baseline=1.5
    )
    svg = draw(found, 300, 210)
    texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith("measured") and text.endswith("…: -4.57, baseline 1.5") for text in texts)
    assert max(map(len, texts)) <= fitting(300)


def test_markup_in_titles_stays_text():
    svg = draw_grid([Picture("CC", title="<script>a</script>")], "<b>&'\"\x00\ufffe")
    root = ElementTree.fromstring(svg)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "<script>a</script>"
    assert texts[-1].startswith("<b>&'\"")
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_colours_are_white_at_zero_and_end_at_the_limit():
    assert colour(0, 1) == (1, 1, 1)
    assert colour(5, 1) == colour(1, 1)
    red, _, blue = colour(1, 1)
    assert red > blue
    red, _, blue = colour(-0.5, 1)
    assert blue > red


def test_a_grid_shares_one_scale_and_one_bar():
    svg = draw_grid([Picture("CC", {0: 2.0}), Picture("CO", {0: 1.0}, {0: -0.5})] * 2, "units", 2, 100, 80)
    root = ElementTree.fromstring(svg)
    assert (root.get("width"), root.get("height")) == ("200", str(2 * 80 + 46))
    assert svg.count("linearGradient id") == 1
    assert "+2<" in svg


def test_pictures_as_png():
    assert rendered(Picture("CCO", {0: 1.0}), 100, 80)[:4] == b"\x89PNG"


def test_invalid_structures_and_long_text():
    with pytest.raises(InputError, match="not a valid SMILES"):
        draw_grid([Picture("nonsense")])
    assert printable("abcdef", 4) == "abc…"
