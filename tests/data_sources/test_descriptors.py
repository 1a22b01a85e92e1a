"""Descriptors: the same list for every molecule, finite or unknown."""

import numpy as np
import pytest

from ckgconv.checks import InputError
from ckgconv.data import descriptors as module
from ckgconv.data.descriptors import DESCRIPTORS, LARGEST, descriptors


def test_every_molecule_has_a_row_of_harmless_values():
    seen = []
    found = descriptors(["CCO", "[Na+].[Cl-]", "[He]", "c1ccccc1C(=O)[O-]"], seen.append)
    assert found.shape == (4, len(DESCRIPTORS))
    assert found.dtype == np.float32
    assert sum(seen) == 4
    known = found[~np.isnan(found)]
    assert (np.abs(known) <= LARGEST).all()
    assert found[0, DESCRIPTORS.index("MolWt")] == pytest.approx(46.07, abs=0.01)
    assert found[3, DESCRIPTORS.index("fr_COO")] == 1
    assert np.array_equal(found[:1], descriptors(["OCC"]))


def test_what_rdkit_cannot_compute_is_unknown(monkeypatch):
    def fails(molecule):
        raise ValueError

    monkeypatch.setattr(module, "_functions", lambda: (fails, lambda molecule: 1e9, lambda molecule: float("inf")))
    monkeypatch.setattr(module, "DESCRIPTORS", ("a", "b", "c"))
    assert np.isnan(descriptors(["C"])).all()


def test_an_invalid_smiles_is_refused():
    with pytest.raises(InputError, match="not a valid SMILES"):
        descriptors(["C1CC"])
