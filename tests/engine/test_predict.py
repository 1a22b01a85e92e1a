"""Molecules are predicted in batches whose pairs fit into memory."""

from ckgconv.data.packed_molecules import read_molecules
from ckgconv.engine import predict
from ckgconv.engine.predict import batches_of


def test_large_molecules_are_predicted_in_smaller_batches(monkeypatch):
    molecules, _ = read_molecules(["C" * size for size in (3, 3, 3, 30, 3, 3, 40, 20)], "molecule")
    rows = [0, 1, 2, 3, 4, 5, 6, 7]
    assert list(batches_of(rows, molecules, 3)) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    monkeypatch.setattr(predict, "MOST_PAIRS", 30**2 + 10)
    assert list(batches_of(rows, molecules, 3)) == [[0, 1, 2], [3, 4], [5], [6], [7]]
    assert list(batches_of([], molecules, 3)) == []
