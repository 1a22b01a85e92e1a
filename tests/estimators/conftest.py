"""Fixtures: estimators fitted once for all tests."""

import pytest
from molecules_for_tests import ENDS, LENGTHS, SMILES, TINY

from ckgconv import CKGCNClassifier, CKGCNRegressor


@pytest.fixture(scope="session")
def regressor():
    return CKGCNRegressor(**TINY).fit(SMILES, LENGTHS)


@pytest.fixture(scope="session")
def classifier():
    return CKGCNClassifier(**TINY).fit(SMILES, ENDS)
