"""Molecules are predicted in batches whose pairs fit into memory."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ckgconv import InputError, recipe
from ckgconv.data.packed_molecules import read_molecules
from ckgconv.engine import predict_molecules as predict
from ckgconv.engine.predict_molecules import batches_of, featuriser_of


def test_large_molecules_are_predicted_in_smaller_batches(monkeypatch):
    molecules, _ = read_molecules(["C" * size for size in (3, 3, 3, 30, 3, 3, 40, 20)], "molecule")
    rows = [0, 1, 2, 3, 4, 5, 6, 7]
    assert list(batches_of(rows, molecules, 3)) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    monkeypatch.setattr(predict, "MOST_PAIRS", 30**2 + 10)
    assert list(batches_of(rows, molecules, 3)) == [[0, 1, 2], [3, 4], [5], [6], [7]]
    assert list(batches_of([], molecules, 3)) == []


@pytest.mark.parametrize("name", ["zinc", "zinc-gps", "zinc-gine-plus"])
def test_networks_trained_on_zinc_read_its_atoms(name):
    assert featuriser_of(SimpleNamespace(recipe=recipe(name), folder=None)) == "zinc"


def test_networks_that_read_no_atoms_are_named():
    chosen = recipe("zinc-gps")
    model = replace(chosen.model, node=replace(chosen.model.node, kind="constant", sizes=()))
    run = SimpleNamespace(recipe=replace(chosen, model=model), folder="runs/blind")
    with pytest.raises(
        InputError, match=r"runs/blind was trained on 'zinc' with nodes of kind 'constant' and sizes \[\]"
    ):
        featuriser_of(run)
    other = replace(chosen, data=replace(chosen.data, name="mine"))
    with pytest.raises(InputError, match=r"'types' and sizes \[28\]"):
        featuriser_of(SimpleNamespace(recipe=other, folder=None))
