"""Computed properties of molecules, from which a network learns what they are made of before it sees a measurement.

    descriptors     of `data.descriptors`: masses, charges, surfaces, counts of rings and fragments
    environments    log(1 + count) of the groups of atoms within two bonds of each atom, hashed to 256 columns
    both            one after the other

Legend: M molecules, C properties.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ckgconv.checks import InputError, shown
from ckgconv.data.descriptors import DESCRIPTORS, descriptors
from ckgconv.data.fingerprints import environment_counts
from ckgconv.data.molecules import parsed

COLUMNS = 256
ENVIRONMENTS = tuple(f"environment{place}" for place in range(COLUMNS))


@dataclass(frozen=True)
class Properties:
    """What is computed of each molecule."""

    names: tuple[str, ...]  # of the columns
    values: Callable[[Sequence[str]], NDArray[np.float32]]  # valid SMILES → [M, C], NaN where undefined


def environments(smiles: Sequence[str]) -> NDArray[np.float32]:
    """[M, 256] of valid SMILES."""
    found = np.empty((len(smiles), COLUMNS), dtype=np.float32)
    for row, each in enumerate(smiles):
        molecule = parsed(each)
        if molecule is None:
            raise InputError(f"{shown(each)} is not a valid SMILES: its environments cannot be counted.")
        found[row] = np.log1p(environment_counts(molecule, COLUMNS))
    return found


def both(smiles: Sequence[str]) -> NDArray[np.float32]:
    """[M, C] of valid SMILES."""
    return np.concatenate([descriptors(smiles), environments(smiles)], axis=1)


PROPERTIES = {
    "descriptors": Properties(DESCRIPTORS, descriptors),
    "environments": Properties(ENVIRONMENTS, environments),
    "both": Properties(DESCRIPTORS + ENVIRONMENTS, both),
}
