"""Similarity to the nearest training molecule."""

import numpy as np
import pytest
from rdkit.Chem import MolFromSmiles
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.DataStructs import TanimotoSimilarity

from ckgconv.data.fingerprints import fingerprint
from ckgconv.data.molecules import parse_smiles
from ckgconv.uncertainty import applicability
from ckgconv.uncertainty.applicability import fitted_applicability

SMILES = ["CCO", "CCN", "CCCO", "c1ccccc1", "c1ccccc1O", "CC(=O)O", "CC(=O)N"]


def prints(smiles):
    return [fingerprint(parse_smiles(each)) for each in smiles]


def test_similarities_are_those_of_rdkit():
    domain = fitted_applicability(prints(SMILES), SMILES)
    generator = GetMorganGenerator(radius=2, fpSize=2048)
    own = generator.GetFingerprint(MolFromSmiles("CCCN"))
    expected = [TanimotoSimilarity(own, generator.GetFingerprint(MolFromSmiles(each))) for each in SMILES]
    assert domain.compare(prints(["CCCN"])[0]) == pytest.approx(expected)


def test_the_nearest_molecule_and_the_threshold(monkeypatch):
    domain = fitted_applicability(prints(SMILES), SMILES)
    found = domain.nearness([*prints(["OCC", "[Na+].[Cl-]"]), None])
    assert found.similarity[0] == 1.0
    assert found.nearest == ["CCO", found.nearest[1], ""]
    assert found.outside.tolist() == [False, True, False]
    assert np.isnan(found.similarity[2])
    assert 0 < domain.threshold < 1
    monkeypatch.setattr(applicability, "MOST_COMPARED", 3)
    assert 0 <= fitted_applicability(prints(SMILES), SMILES).threshold <= 1


def test_one_molecule_has_no_neighbour():
    assert fitted_applicability(prints(SMILES[:1]), SMILES[:1]) is None
    assert fitted_applicability([], []) is None
