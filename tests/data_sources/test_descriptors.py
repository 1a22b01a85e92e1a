"""Descriptors: the same list for every molecule, finite or unknown."""

import math

import numpy as np
import pytest

from ckgconv.checks import InputError
from ckgconv.data import descriptors as module
from ckgconv.data.descriptors import DESCRIPTORS, LARGEST, descriptors
from ckgconv.data.molecules import parsed, read_smiles


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

    together, alone = module.Together(np.array([0, 1]), fails), [fails, lambda molecule: 1e9, lambda molecule: math.inf]
    monkeypatch.setattr(module, "_functions", lambda: ([together], [2, 3, 4], alone))
    monkeypatch.setattr(module, "DESCRIPTORS", ("a", "b", "c", "d", "e"))
    assert np.isnan(descriptors(["C"])).all()


def test_an_invalid_smiles_is_refused():
    with pytest.raises(InputError, match="not a valid SMILES"):
        descriptors(["C1CC"])


def test_what_is_computed_together_is_what_rdkit_computes_alone():
    from rdkit import Chem
    from rdkit.Chem import Descriptors

    smiles = ["CCO", "c1ccc2[nH]ccc2c1", "[Na+].[Cl-]", "[H][H]", "*", "C[Si](C)(C)Cl", "CC(=O)Oc1ccccc1C(=O)O", "[U]"]
    smiles += ["C1CC1C", "C1CCC1CC", "C12C3C1C23", "C1CCCC1", "CCCCC", "CC(C)(C)C", "BrCCP(=O)(O)OCCS", "[2H]C([2H])O"]
    functions = dict(Descriptors.descList)
    for text, row in zip(smiles, descriptors(smiles), strict=True):
        for name, value in zip(DESCRIPTORS, row, strict=True):
            try:
                alone = float(functions[name](Chem.MolFromSmiles(text)))
            except (ValueError, ArithmeticError, RuntimeError):
                alone = math.nan
            expected = np.float32(alone if abs(alone) <= LARGEST else math.nan)
            assert np.array_equal(value, expected, equal_nan=True), (text, name)


def test_a_molecule_is_parsed_once_and_not_changed_by_a_featuriser():
    parsed.cache_clear()
    for featuriser in ("zinc", "molecule"):
        read_smiles("c1ccccc1", featuriser)
    descriptors(["c1ccccc1"])
    assert parsed.cache_info().misses == 1
    assert all(bond.GetIsAromatic() for bond in parsed("c1ccccc1").GetBonds())
    assert all(str(bond.GetBondType()) == "AROMATIC" for bond in parsed("c1ccccc1").GetBonds())
