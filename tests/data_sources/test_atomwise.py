"""States and connectivity against their definitions: sums over pairs, and over paths that are walked one by one."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from rdkit.Chem import rdMolDescriptors

from ckgconv.data.atomwise import ATOMWISE, atomwise, connectivity, electrotopological
from ckgconv.data.molecules import parsed


def over_paths(weights, adjacency, bonds):
    """Half the sum over all orders of different atoms that are neighbours one after the other."""
    paths = permutations(range(len(weights)), bonds + 1)
    held = (path for path in paths if all(adjacency[pair] for pair in pairwise(path)))
    return sum(weights[list(path)].prod() for path in held) / 2


@pytest.mark.parametrize("seed", range(4))
def test_connectivity_of_trees_is_the_sum_over_their_paths(seed):
    draw = np.random.default_rng(seed)
    adjacency = np.zeros((8, 8))
    for atom in range(1, 8):
        other = draw.integers(atom)
        adjacency[atom, other] = adjacency[other, atom] = 1
    weights = draw.random(8)
    expected = [over_paths(weights, adjacency, bonds) for bonds in (2, 3, 4)]
    assert connectivity(weights, adjacency) == pytest.approx(expected, abs=1e-12)


def test_connectivity_of_a_ring_of_five():
    adjacency = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    weights = np.arange(1.0, 6.0)
    expected = [over_paths(weights, adjacency, bonds) for bonds in (2, 3, 4)]
    assert connectivity(weights, adjacency) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("smiles", ["C1CC1C", "C1CCC1", "C12C3C1C23"])
def test_small_rings_are_left_to_rdkit(smiles):
    molecule = parsed(smiles)
    found = dict(zip(ATOMWISE, atomwise(molecule), strict=True))
    assert found["Chi4n"] == rdMolDescriptors.CalcChi4n(molecule)


def test_states_are_the_sums_of_their_definition():
    # Ethanol: C, C, O of degrees 1, 2, 1 with 1, 2, 5 outer electrons that hold no hydrogen.
    own = np.array([2.0, 1.5, 6.0])
    apart = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 2.0], [3.0, 2.0, 1.0]])
    expected = own + ((own[:, None] - own) / apart**2).sum(1)
    found = electrotopological(np.array([6, 6, 8]), np.array([1, 2, 1]), np.array([1, 2, 5]), apart - 1)
    assert found == pytest.approx(expected, abs=1e-12)


def test_fragments_that_do_not_meet_do_not_act_on_each_other():
    apart = np.array([[0.0, 1e8], [1e8, 0.0]])
    assert electrotopological(np.array([11, 17]), np.array([0, 0]), np.array([1, 7]), apart).tolist() == [0.0, 0.0]
