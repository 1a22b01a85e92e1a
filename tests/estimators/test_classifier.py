import numpy as np
import pytest
from molecules_for_tests import ENDS, SMILES, TINY

from ckgconv import CKGCNClassifier, InputError
from ckgconv.estimators.fitting import InvalidMoleculeWarning


def test_two_classes_of_text(classifier):
    assert classifier.classes_.tolist() == ["chlorine", "other"]
    probabilities = classifier.predict_proba(SMILES)
    assert probabilities.shape == (len(SMILES), 2)
    assert np.allclose(probabilities.sum(1), 1)
    assert classifier.predict(SMILES).tolist() == classifier.classes_[probabilities.argmax(1)].tolist()
    assert classifier.score(SMILES, ENDS) == np.mean(classifier.predict(SMILES) == ENDS)


def test_three_classes_of_numbers():
    y = np.arange(len(SMILES)) % 3 * 10
    fitted = CKGCNClassifier(**TINY).fit(SMILES, y)
    assert fitted.predict_proba(SMILES).shape == (len(SMILES), 3)
    assert set(fitted.predict(SMILES)) <= {0, 10, 20}


def test_labels_of_which_some_are_unknown():
    y = np.stack([ENDS == "other", np.arange(len(SMILES)) % 2], axis=1).astype(float)
    y[::5, 0] = np.nan
    fitted = CKGCNClassifier(**TINY, validation_fraction=0.5).fit(SMILES, y)
    assert fitted.predict(SMILES).shape == fitted.predict_proba(SMILES).shape == y.shape
    assert 0 <= fitted.score(SMILES, y) <= 1


def test_invalid_molecules_have_no_class(classifier):
    with pytest.warns(InvalidMoleculeWarning):
        found = classifier.predict(["C1CC", "CO"])
    assert found.dtype == object
    assert found[0] != found[0]
    with pytest.warns(InvalidMoleculeWarning):
        assert classifier.score([*SMILES, "C("], [*ENDS, "other"]) == classifier.score(SMILES, ENDS)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (["a"] * 4, "y has one class only"),
        (["a", None, "b", "b"], "y contains None, which is no class, in row 1"),
        ([0.5, 1.5, 2.5, 3.25], "Unknown label type"),
        ([[0, 1], [0, 2], [1, 0], [1, 1]], "labels are 0 or 1"),
        (np.array([1, "a", 1, "a"], dtype=object), "different types|Unknown label type|Mix of label"),
    ],
)
def test_wrong_classes_are_refused(y, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        CKGCNClassifier(**TINY).fit(SMILES[:4], y)
    assert isinstance(caught.value, InputError) or "label" in sentence
