"""Descriptors that follow from one pass over the atoms of a molecule: electrotopological indices, valence electrons, χ.

The electrotopological state of atom i, of degree δ_i, with δ_i^v electrons beyond its shell that hold no hydrogen, of
principal quantum number N_i, is (Hall, Mohney and Kier, 1991)

    S_i = I_i + Σ_j (I_i - I_j) / (d_ij + 1)²,    I_i = ((2 / N_i)² δ_i^v + 1) / δ_i

with d_ij the bonds between two atoms; and χ⁰ = Σ_i δ_i^(-½), χ¹ = Σ over bonds (δ_i δ_j)^(-½) (Kier and Hall, 1991).
RDKit computes the same by loops of Python over pairs of atoms, which took a fifth of the time of all descriptors.

Legend: A atoms.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckgconv.data.molecules import rdkit_chem

ATOMWISE = (
    *("MaxEStateIndex", "MinEStateIndex", "MaxAbsEStateIndex", "MinAbsEStateIndex"),
    *("NumValenceElectrons", "Chi0", "Chi1"),
)
# Atomic numbers of the noble gases, each of which ends a shell.
NOBLE = np.array([2, 10, 18, 36, 54, 86])
# What RDKit takes for the distance between atoms of different fragments is larger.
UNREACHABLE = 1e6


def atomwise(molecule: Any) -> tuple[float, ...]:
    """The values of `ATOMWISE`; the states are kept with the molecule, where RDKit's histograms read them."""
    atoms = [molecule.GetAtomWithIdx(index) for index in range(molecule.GetNumAtoms())]
    numbers = np.array([atom.GetAtomicNum() for atom in atoms])
    hydrogens = np.array([atom.GetTotalNumHs() for atom in atoms])
    degrees = np.array([atom.GetDegree() for atom in atoms])
    outer = _outer_electrons()[numbers]
    distances = rdkit_chem().GetDistanceMatrix(molecule, useBO=False, useAtomWts=False)
    states = electrotopological(numbers, degrees, outer - hydrogens, distances)
    molecule._eStateIndices = states
    roots = np.where(degrees > 0, np.maximum(degrees, 1.0) ** -0.5, 0.0)
    sizes = np.abs(states)
    charge = sum(atom.GetFormalCharge() for atom in atoms)
    return (
        *(states.max(), states.min(), sizes.max(), sizes.min()),
        *((outer + hydrogens).sum() - charge, roots.sum(), roots @ (distances == 1) @ roots / 2),
    )


def electrotopological(
    numbers: NDArray[np.int64], degrees: NDArray[np.int64], valence: NDArray[np.int64], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The states S [A] of atoms with these numbers, degrees and δ^v [A], and distances [A, A]."""
    shells = np.searchsorted(NOBLE, numbers) + 1
    own = np.where(degrees > 0, (4.0 / shells**2 * valence + 1) / np.maximum(degrees, 1), 0.0)
    weights = np.where(distances + 1 < UNREACHABLE, (distances + 1) ** -2.0, 0.0)
    states: NDArray[np.float64] = own + own * weights.sum(1) - weights @ own
    return states


@cache
def _outer_electrons() -> NDArray[np.int64]:
    """Of each atomic number, that of a dummy atom first."""
    table = rdkit_chem().GetPeriodicTable()
    return np.array([table.GetNOuterElecs(number) for number in range(119)])
