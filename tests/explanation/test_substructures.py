"""Substructures: pieces add up to the molecule; means, counts and drawings."""

from xml.etree import ElementTree

import pytest

from ckgconv import explain
from ckgconv.explanation.substructures import contribution, draw_substructures, substructures

MOLECULES = ("CC(=O)Nc1ccccc1", "CC(=O)Oc1ccccc1", "CCO", "C")


@pytest.fixture(scope="module")
def explained(run):
    return [explain(run, smiles) for smiles in MOLECULES]


@pytest.mark.parametrize("kind", ["brics", "scaffold"])
def test_pieces_add_up_to_all_contributions(explained, kind):
    found = substructures(explained, kind)
    assert sum(each.mean * each.n for each in found) == pytest.approx(sum(each.total for each in explained))
    assert [each.mean for each in found] == sorted((each.mean for each in found), reverse=True)


def test_occurrences_are_counted(explained):
    ring = next(each for each in substructures(explained, "scaffold") if each.name == "c1ccccc1")
    assert (ring.n, ring.molecules) == (2, 2)
    values = [contribution(each, range(4, 10)) for each in explained[:2]]
    assert ring.mean == pytest.approx(sum(values) / 2)
    assert ring.std == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert all(each.n >= 2 for each in substructures(explained, "scaffold", least=2))


def test_functional_groups_have_names(explained):
    names = {each.name: each for each in substructures(explained, "groups")}
    assert {"amide", "benzene", "ester"} <= set(names)
    assert names["benzene"].n == 2


def test_drawings_parse(explained):
    svg = draw_substructures(substructures(explained, "brics"), "y", 1)
    ElementTree.fromstring(svg)
    assert svg.count("(n = ") == 2
