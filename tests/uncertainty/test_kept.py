"""What was fitted, in files."""

import json
import math

import numpy as np
import pytest

from ckgconv import InputError
from ckgconv.data.fingerprints import fingerprint
from ckgconv.data.molecules import parse_smiles
from ckgconv.uncertainty import Uncertainty, read_uncertainty, write_uncertainty
from ckgconv.uncertainty.applicability import fitted_applicability
from ckgconv.uncertainty.calibration import Calibration
from ckgconv.uncertainty.intervals import Scores

SMILES = ["CCO", "CCN", "c1ccccc1"]


def some():
    domain = fitted_applicability([fingerprint(parse_smiles(each)) for each in SMILES], SMILES)
    scores = (Scores(np.array([0.1, 0.2])), Scores(np.array([0.5]), 0.3))
    return Uncertainty(1, ("a", "b"), scores, (Calibration(0.5, -1.0), None), ("b: too few",), domain)


def test_what_is_written_is_read(tmp_path):
    assert read_uncertainty(tmp_path) is None
    written = some()
    write_uncertainty(tmp_path, written)
    found = read_uncertainty(tmp_path)
    assert (found.members, found.outputs, found.notes) == (1, ("a", "b"), ("b: too few",))
    assert [each.ascending.tolist() for each in found.scores] == [[0.1, 0.2], [0.5]]
    assert [each.floor for each in found.scores] == [None, 0.3]
    assert found.calibrations == written.calibrations
    assert found.applicability.smiles == tuple(SMILES)
    assert np.array_equal(found.applicability.fingerprints, written.applicability.fingerprints)
    assert found.applicability.threshold == written.applicability.threshold
    write_uncertainty(tmp_path, Uncertainty(2, ("a",)))
    assert read_uncertainty(tmp_path) == Uncertainty(2, ("a",))


DOMAIN = {"threshold": 0.2, "bits": 2048, "radius": 2, "molecules_sha256": "no"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 99}, "it has format 99"),
        ({"members": "two"}, "members is 'two', not a whole number"),
        ({"outputs": ["a"]}, "it has scores of 2 outputs, not of 1"),
        ({"scores": [{"ascending": [2.0, 1.0], "floor": None}] * 2}, "scores[0].ascending is not ascending from 0"),
        ({"scores": [{"ascending": [math.nan], "floor": None}] * 2}, "ascending"),
        ({"scores": [{"ascending": [1.0], "floor": -1.0}] * 2}, "scores[0].floor is -1, not more than 0"),
        ({"calibrations": [{"slope": -1.0, "offset": 0.0}]}, "calibrations[0].slope is -1, not more than 0"),
        ({"calibrations": 3}, "calibrations is 3, not a list"),
        ({"applicability": DOMAIN | {"threshold": 2.0}}, "applicability.threshold is 2, not at most 1"),
        ({"applicability": DOMAIN | {"bits": 64}}, "bits and radius (64, 2)"),
        ({"applicability": DOMAIN}, "has another digest"),
    ],
)
def test_damaged_values_are_a_sentence(tmp_path, change, sentence):
    write_uncertainty(tmp_path, some())
    path = tmp_path / "uncertainty.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match="remove it to predict without") as caught:
        read_uncertainty(tmp_path)
    assert sentence in str(caught.value)


def test_damaged_molecules_are_a_sentence(tmp_path):
    write_uncertainty(tmp_path, some())
    molecules = tmp_path / "training_molecules.safetensors"
    molecules.write_bytes(molecules.read_bytes()[:-1])
    with pytest.raises(InputError, match="another digest"):
        read_uncertainty(tmp_path)
    molecules.unlink()
    with pytest.raises(InputError, match="missing or too large"):
        read_uncertainty(tmp_path)
