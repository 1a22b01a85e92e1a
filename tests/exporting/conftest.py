"""Fixtures: small runs in memory, and one of them exported in both formats, once for all tests."""

from dataclasses import replace

import pytest
from known_runs import run_of, small_recipe
from molecules_for_tests import ENDS, LENGTHS, SMILES, TINY

from ckgconv import CKGCNClassifier, CKGCNRegressor
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.exporting.folder import export_runs


def trained(descriptors=False, **settings):
    own = {"epochs": 1, "descriptors": descriptors, "settings": {"model.steps": 3, **settings}}
    return CKGCNRegressor(**{**TINY, **own}).fit(SMILES, LENGTHS).run_


@pytest.fixture(scope="session")
def hops():
    """A regression with a support of two hops."""
    return trained(**{"model.support": 2})


@pytest.fixture(scope="session")
def another():
    """The same on the same data, trained otherwise."""
    return trained(**{"model.support": 2, "training.learning_rate": 0.01})


@pytest.fixture(scope="session")
def runs(hops):
    """By what they are."""
    classes = [each[-1] for each in SMILES]
    return {
        "hops": hops,
        "global": trained(**{"model.support": "global"}),
        "sparse": trained(**{"model.support": "sparse_global"}),
        "labels": CKGCNClassifier(**TINY).fit(SMILES, ENDS).run_,
        "descriptors": trained(descriptors=True),
        "classes": CKGCNClassifier(**TINY).fit(SMILES, classes).run_,
    }


@pytest.fixture(scope="session")
def exported(hops, tmp_path_factory):
    """What `export_runs` returned."""
    return export_runs([hops], tmp_path_factory.mktemp("exported") / "hops")


@pytest.fixture(scope="session")
def own_columns():
    """A network that reads two own columns beside descriptors."""
    recipe = small_recipe(graph_features=len(DESCRIPTORS) + 2, support=2)
    data = replace(recipe.data, descriptors="rdkit", features=("ph", "dose"))
    return run_of(replace(recipe, data=data))
