"""Descriptors that follow from one pass over the atoms of a molecule: electrotopological states, valence electrons, χ.

The electrotopological state of atom i, of degree δ_i, with δ_i^v outer electrons that hold no hydrogen, of principal
quantum number N_i, is (Hall, Mohney and Kier, 1991)

    S_i = I_i + Σ_j (I_i - I_j) / (d_ij + 1)²,    I_i = ((2 / N_i)² δ_i^v + 1) / δ_i

with d_ij the bonds between two atoms. The connectivity χ of order n (Kier and Hall, 1991) is the sum over the paths of
n bonds of Π δ^(-½) over their atoms; χ^n takes δ_i^v for δ_i, and χ^v divides it by the electrons of inner shells where
there is more than one. RDKit computes the same by loops of Python and one search of paths for each, which took a third
of the time of all descriptors. Sums are in RDKit's order where it is simple, so that their last digit is the same.

Legend: A atoms, B bonds.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckgconv.data.molecules import rdkit_chem

ATOMWISE = (
    *("MaxEStateIndex", "MinEStateIndex", "MaxAbsEStateIndex", "MinAbsEStateIndex"),
    *("NumValenceElectrons", "Chi0", "Chi1", "Chi2n", "Chi3n", "Chi4n", "Chi2v", "Chi3v", "Chi4v"),
)
# Atomic numbers of the noble gases: each closes a shell.
NOBLE = np.array([2, 10, 18, 36, 54, 86])
NEON = 10
# RDKit gives atoms of different fragments a larger distance than this.
UNREACHABLE = 1e6
Array = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    sizes = np.abs(states)
    charge = sum(atom.GetFormalCharge() for atom in atoms)
    return (
        *(states.max(), states.min(), sizes.max(), sizes.min()),
        *((outer + hydrogens).sum() - charge, *_low_orders(molecule, degrees)),
        *_high_orders(molecule, numbers, outer, outer - hydrogens, (distances == 1).astype(np.float64)),
    )


def electrotopological(numbers: Integers, degrees: Integers, valence: Integers, distances: Array) -> Array:
    """The states S [A] of atoms with these numbers, degrees and δ^v [A], and distances [A, A]."""
    shells = np.searchsorted(NOBLE, numbers) + 1
    own = np.where(degrees > 0, (4.0 / shells**2 * valence + 1) / np.maximum(degrees, 1), 0.0)
    apart = distances + 1
    pull = np.where(apart < UNREACHABLE, (own - own[:, None]) / (apart * apart), 0.0)
    states: Array = pull.cumsum(axis=0)[-1] + own
    return states


def connectivity(weights: Array, adjacency: Array) -> tuple[float, float, float]:
    """χ of the orders 2, 3 and 4 of atoms with weights δ^(-½) [A], in a graph [A, A] without rings of 3 or 4 atoms.

    Without such rings any two steps away from a bond, or from an atom by different bonds, end at different atoms.
    """
    around = adjacency @ weights
    second = weights @ (around**2 - adjacency @ weights**2) / 2
    # [A, A]: from atom k over its neighbour j to any atom beyond, w_j (Σ_i w_i - w_k).
    beyond = adjacency * weights[:, None] * (around[:, None] - weights)
    third = (beyond * beyond.T).sum() / 2
    fourth = weights @ (beyond.sum(0) ** 2 - (beyond**2).sum(0)) / 2
    return float(second), float(third), float(fourth)


def _low_orders(molecule: Any, degrees: Integers) -> tuple[float, float]:
    """χ of the orders 0 and 1 of all bonds, whatever hydrogens they hold."""
    bonds = [molecule.GetBondWithIdx(index) for index in range(molecule.GetNumBonds())]
    ends = np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds], dtype=np.int64).reshape(-1, 2)
    return _sum_of_roots(degrees[degrees > 0]), _sum_of_roots(degrees[ends].prod(1))


def _sum_of_roots(values: Integers) -> float:
    return float(np.sqrt(1.0 / values).cumsum()[-1]) if len(values) else 0.0


def _high_orders(
    molecule: Any, numbers: Integers, outer: Integers, valence: Integers, adjacency: Array
) -> tuple[float, ...]:
    """χ^n of the orders 2, 3 and 4, then χ^v, of a graph [A, A]."""
    if _has_small_ring(adjacency):
        return tuple(float(order(molecule)) for order in _orders_of_rdkit())
    inner = np.where(numbers > NEON, numbers - outer - 1, 1)
    return (
        *connectivity(_weights(valence, numbers), adjacency),
        *connectivity(_weights(valence / inner, numbers), adjacency),
    )


def _has_small_ring(adjacency: Array) -> bool:
    """Whether two neighbours have a neighbour in common, or two atoms have two of them."""
    walks = adjacency @ adjacency
    np.fill_diagonal(walks, 0)
    return bool((walks > 1).any() or (walks * adjacency).any())


def _weights(electrons: NDArray[Any], numbers: Integers) -> Array:
    """δ^(-½) [A]; 0 of hydrogen and of atoms without electrons of their own."""
    counted = (electrons > 0) & (numbers > 1)
    return np.where(counted, np.where(counted, electrons, 1.0) ** -0.5, 0.0)


@cache
def _orders_of_rdkit() -> tuple[Any, ...]:
    from rdkit.Chem import rdMolDescriptors as known

    return (
        *(known.CalcChi2n, known.CalcChi3n, known.CalcChi4n),
        *(known.CalcChi2v, known.CalcChi3v, known.CalcChi4v),
    )


@cache
def _outer_electrons() -> Integers:
    """Of each atomic number, that of a dummy atom first."""
    table = rdkit_chem().GetPeriodicTable()
    return np.array([table.GetNOuterElecs(number) for number in range(119)])
