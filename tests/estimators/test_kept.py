"""Saved, pickled and copied estimators predict as before."""

import json
import pickle
from copy import deepcopy

import numpy as np
import pytest
from molecules_for_tests import LENGTHS, SMILES, TINY
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from ckgconv import CKGCNClassifier, CKGCNRegressor, InputError, open_run
from ckgconv.estimators.base import FILE
from ckgconv.estimators.kept import FILES, run_bytes


def test_a_saved_estimator_is_a_run_folder(regressor, tmp_path):
    regressor.save(tmp_path / "saved")
    found = CKGCNRegressor.load(tmp_path / "saved")
    assert np.array_equal(found.predict(SMILES), regressor.predict(SMILES))
    assert found.get_params() == regressor.get_params()
    assert open_run(tmp_path / "saved").recipe == regressor.run_.recipe
    with pytest.raises(InputError, match="already exists"):
        regressor.save(tmp_path / "saved")


def test_classes_are_saved(classifier, tmp_path):
    classifier.save(tmp_path / "saved")
    assert CKGCNClassifier.load(tmp_path / "saved").predict(SMILES).tolist() == classifier.predict(SMILES).tolist()
    with pytest.raises(InputError, match="it is one of a CKGCNClassifier"):
        CKGCNRegressor.load(tmp_path / "saved")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"estimator": None}, "estimator is None"),
        ({"parameters": {"width": 4, "code": "x"}}, "unknown parameter 'code'"),
        ({"classes": [["a"]]}, r"classes\[0\] is \[\'a\'\], not a whole number"),
        ({"classes": ["a", "b", "c"]}, "is not that of its network"),
        ({"classes_kind": "i"}, "not of their kind"),
        ({"feature_names": 3}, "feature_names is 3, not a list of a text"),
    ],
)
def test_damaged_files_are_refused(classifier, tmp_path, change, sentence):
    classifier.save(tmp_path / "saved")
    file = tmp_path / "saved" / FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=sentence):
        CKGCNClassifier.load(tmp_path / "saved")


def test_what_is_no_saved_estimator_is_refused(tmp_path):
    with pytest.raises(InputError, match="give the folder that CKGCNRegressor"):
        CKGCNRegressor.load(tmp_path)
    generator = CKGCNRegressor(**TINY | {"random_state": np.random.RandomState(0)}).fit(SMILES, LENGTHS)
    with pytest.raises(InputError, match="cannot be written as JSON"):
        generator.save(tmp_path / "saved")


def test_pickles_and_copies(regressor):
    expected = regressor.predict(SMILES)
    for found in (pickle.loads(pickle.dumps(regressor)), deepcopy(regressor)):
        assert np.array_equal(found.predict(SMILES), expected)
    assert set(run_bytes(regressor.run_)) == set(FILES)
    assert not hasattr(clone(regressor), "run_")
    assert not hasattr(pickle.loads(pickle.dumps(CKGCNRegressor(**TINY))), "run_")


def test_cross_validation_in_processes():
    alone, together = (cross_val_score(CKGCNRegressor(**TINY), SMILES, LENGTHS, cv=2, n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(alone, together)
