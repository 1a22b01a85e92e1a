from pathlib import Path

import pytest
from molecules_for_tests import LENGTHS, SMILES, TINY

from ckgconv import CKGCNRegressor
from ckgconv.exporting import folder
from ckgconv.exporting.folder import Exported


@pytest.fixture
def asked(monkeypatch):
    """What `export_runs`, which has tests of its own, was asked for."""
    calls = []

    def export_runs(runs, place, format):
        calls.append((len(runs), place, format))
        return Exported(place, 17, 1e-6, None if format == "torch" else 2e-6)

    monkeypatch.setattr(folder, "export_runs", export_runs)
    return calls


def test_export(ckgconv, asked):
    fitted = CKGCNRegressor(**{**TINY, "epochs": 1}).fit(SMILES, LENGTHS)
    for name in ("run", "other"):
        fitted.save(name)
    code, out, error = ckgconv("export", "run", "-o", "exported", "--format", "torch")
    assert code == 0, error
    assert (
        "exported/model.pt2: largest difference from ckgconv 1.00e-06, over 17 molecules, in a process without" in out
    )
    assert "model.onnx" not in out
    code, out, _ = ckgconv("export", "run", "-o", "exported", "--json")
    assert '"onnx": 2e-06' in out
    assert ckgconv("export", "run", "other", "-o", "exported")[0] == 0
    assert asked == [(1, Path("exported"), "torch"), (1, Path("exported"), "both"), (2, Path("exported"), "both")]


def test_an_ensemble_is_exported_by_its_folder(ckgconv, asked):
    fitted = CKGCNRegressor(**{**TINY, "epochs": 1}).fit(SMILES, LENGTHS)
    for place in range(2):
        fitted.save(f"two/member{place}")
    Path("two/ensemble.json").write_text('{"format": 1, "members": ["member0", "member1"]}')
    code, _, error = ckgconv("export", "two", "-o", "exported")
    assert code == 0, error
    assert asked == [(2, Path("exported"), "both")]
    code, _, error = ckgconv("export", "two", "two/member0", "-o", "exported")
    assert code == 2
    assert "was given twice" in error


def test_what_cannot_be_exported_is_refused(ckgconv):
    code, _, error = ckgconv("export", "nothing", "-o", "exported")
    assert code == 2
    assert "nothing is not a folder" in error
    assert ckgconv("export", "zinc")[0] == 2
    assert ckgconv("export", "zinc", "-o", "exported", "--format", "tflite")[0] == 2
