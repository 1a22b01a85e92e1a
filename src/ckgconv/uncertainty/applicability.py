"""The applicability domain: how similar a molecule is to the nearest one that the network was trained on.

    similarity    Tanimoto, on Morgan fingerprints (`data.fingerprints`)
    threshold     the 5th percentile of each training molecule's similarity to the nearest other one
    outside       a molecule whose similarity is below the threshold

Legend: N training molecules, M molecules, W bytes of a fingerprint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ckgconv.data.fingerprints import WIDTH, Fingerprints
from ckgconv.uncertainty.predicted import Nearness

PERCENTILE = 5.0
# Training molecules whose nearest neighbours are looked for: each is compared with all others.
MOST_COMPARED = 2000


@dataclass(frozen=True)
class Applicability:
    """Training molecules, and the least similarity to one of them inside the domain."""

    fingerprints: Fingerprints  # [N, W]
    smiles: Sequence[str]  # [N] as in the training data
    threshold: float

    def nearness(self, fingerprints: Sequence[Fingerprints | None]) -> Nearness:
        """The nearest training molecule of each molecule; None where there is no molecule."""
        similarity = np.full(len(fingerprints), np.nan)
        nearest = [""] * len(fingerprints)
        for row, each in enumerate(fingerprints):
            if each is not None:
                similarities = self.compare(each)
                place = int(similarities.argmax())
                similarity[row], nearest[row] = similarities[place], self.smiles[place]
        return Nearness(similarity, nearest, similarity < self.threshold)

    def compare(self, fingerprint: Fingerprints) -> NDArray[np.float64]:
        """[N] similarity of a molecule to every training molecule."""
        own = fingerprint.view(np.uint64)
        shared = np.bitwise_count(self._words & own).sum(1, dtype=np.int64)
        union = self._sizes + int(np.bitwise_count(own).sum()) - shared
        return shared / np.maximum(union, 1)

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        """[N, W / 8], whole words, which are compared faster than bytes."""
        return np.ascontiguousarray(self.fingerprints).view(np.uint64)

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """[N] bits that are set."""
        return np.bitwise_count(self._words).sum(1, dtype=np.int64)


def fitted_applicability(fingerprints: Sequence[Fingerprints], smiles: Sequence[str]) -> Applicability | None:
    """Of training molecules; None where there are fewer than two."""
    if len(smiles) < 2:
        return None
    table = np.stack(fingerprints).reshape(-1, WIDTH)
    all_inside = Applicability(table, tuple(smiles), 0.0)
    step = max(1, -(-len(smiles) // MOST_COMPARED))
    nearest = []
    for place in range(0, len(smiles), step):
        similarities = all_inside.compare(table[place])
        similarities[place] = -1.0
        nearest.append(float(similarities.max()))
    return Applicability(table, tuple(smiles), float(np.percentile(nearest, PERCENTILE)))
