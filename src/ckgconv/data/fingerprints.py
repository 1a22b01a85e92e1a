"""Morgan fingerprints by rdkit: which circular groups of atoms a molecule has, hashed to bits.

    Tanimoto similarity    s(a, b) = |a ∧ b| / |a ∨ b|, from 0 (nothing in common) to 1 (the same bits)

Legend: M molecules, W = BITS / 8 bytes.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckgconv.data.molecules import rdkit_chem

BITS = 2048
RADIUS = 2
WIDTH = BITS // 8
Fingerprints = NDArray[np.uint8]


def fingerprint(molecule: Any) -> Fingerprints:
    """[W] packed bits of an rdkit molecule."""
    return np.packbits(_generator(BITS).GetFingerprintAsNumPy(molecule))


def environment_counts(molecule: Any, columns: int) -> NDArray[np.uint32]:
    """[columns] how many of the circular groups of an rdkit molecule are hashed to each column."""
    return np.asarray(_generator(columns).GetCountFingerprintAsNumPy(molecule))


@cache
def _generator(size: int) -> Any:
    rdkit_chem()
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    return GetMorganGenerator(radius=RADIUS, fpSize=size)
