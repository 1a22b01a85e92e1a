import numpy as np
import pytest
import torch

from ckgconv import InputError
from ckgconv.data import molecules
from ckgconv.data.molecules import ATOM_SIZES, BOND_SIZES, ZINC_ATOMS, read_smiles, scaffold
from ckgconv.data.splits import random_split, scaffold_split

# Recorded from the official tool chain of the molecular benchmarks.
ETHANOL = [[5, 0, 4, 5, 3, 0, 2, 0, 0], [5, 0, 4, 5, 2, 0, 2, 0, 0], [7, 0, 2, 5, 1, 0, 2, 0, 0]]


def test_columns_of_the_benchmark():
    molecule = read_smiles("CCO", "molecule")
    assert molecule.x.tolist() == ETHANOL
    assert molecule.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert molecule.edge_attr.tolist() == [[0, 0, 0]] * 4
    aromatic = read_smiles("c1ccccc1C=O", "molecule")
    assert aromatic.x[0].tolist() == [5, 0, 3, 5, 1, 0, 1, 1, 1]
    assert aromatic.edge_attr[0].tolist() == [3, 0, 1]
    charged = read_smiles("C[N+](C)(C)[C@@H](F)C(=O)[O-]", "molecule")
    assert charged.x[1, 3] == 6
    assert charged.x[4, 1] in (1, 2)
    assert charged.x[-1, 3] == 4
    assert read_smiles("F/C=C/F", "molecule").edge_attr[2, 1] == 2


@pytest.mark.parametrize(
    "smiles", ["[U]", "[Na+].[Cl-]", "C[Si](C)(C)C", "[2H]O[2H]", "B(O)O", "[Fe+2]", "*C", "O=[Xe](=O)=O"]
)
def test_unusual_atoms_stay_inside_the_vocabularies(smiles):
    molecule = read_smiles(smiles, "molecule")
    assert (molecule.x < np.array(ATOM_SIZES)).all()
    assert (molecule.edge_attr < np.array(BOND_SIZES)).all()


def test_types_of_zinc():
    names = [ZINC_ATOMS[row[0]] for row in read_smiles("C[C@@H]1CN(C(=O)c2ccccc2)CC[C@H]1[NH3+]", "zinc").x]
    assert names[:4] == ["C", "C H1", "C", "N"]
    assert names[-1] == "N H3 +"
    pyrrole = read_smiles("c1cc[nH]c1", "zinc")
    assert [ZINC_ATOMS[row[0]] for row in pyrrole.x] == ["C", "C", "C", "N", "C"]
    assert sorted(pyrrole.edge_attr[:, 0].tolist()) == [1] * 6 + [2] * 4  # kekulised
    with pytest.raises(InputError, match="'Si' is not among the types"):
        read_smiles("C[Si](C)(C)C", "zinc")


@pytest.mark.parametrize("smiles", ["", "  ", "not a molecule", "C1CC", "c1cccc1", "N#N#N"])
def test_invalid_smiles_are_refused(smiles):
    with pytest.raises(InputError, match=r"SMILES"):
        read_smiles(smiles, "molecule")


def test_single_atom_has_no_edges():
    molecule = read_smiles("C", "molecule")
    assert molecule.edge_index.shape == (2, 0)
    assert molecule.edge_attr.shape == (0, 3)


def test_random_split_is_a_partition_that_follows_the_seed():
    split = random_split(103, 0)
    assert sorted(torch.cat(list(split.values())).tolist()) == list(range(103))
    assert [len(split[name]) for name in ("train", "val", "test")] == [82, 10, 11]
    assert torch.equal(split["test"], random_split(103, 0)["test"])
    assert not torch.equal(split["test"], random_split(103, 1)["test"])
    with pytest.raises(InputError, match="9 usable rows"):
        random_split(9, 0)


def test_scaffolds_never_cross_a_split():
    rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "c1ccsc1", "C1CCNCC1", "c1ccc2ccccc2c1", "C1CC1", "C1CCOC1"]
    smiles = [ring + "C" * length for ring in rings for length in range(1, 7)]
    split = scaffold_split(smiles)
    owners = [{scaffold(smiles[row]) for row in rows.tolist()} for rows in split.values()]
    assert not owners[0] & owners[1] | owners[0] & owners[2] | owners[1] & owners[2]
    assert sorted(torch.cat(list(split.values())).tolist()) == list(range(len(smiles)))
    with pytest.raises(InputError, match="leaves no molecule"):
        scaffold_split(["c1ccccc1" + "C" * length for length in range(20)])


def test_a_molecule_beyond_memory_is_refused_whatever_is_allowed(monkeypatch):
    monkeypatch.setattr(molecules, "free_bytes", lambda device: 10**9)
    with pytest.raises(InputError, match=r"has 8,000 atoms, whose pairs need about 2.6 GB, and 1.0 GB are free"):
        read_smiles("C" * 8000, "zinc", most_atoms=10**8)
    assert len(read_smiles("C" * 900, "zinc").x) == 900


@pytest.mark.parametrize("text", ["C1CC" + "C" * 300, "C1" + "\0" * 500, "\N{KELVIN SIGN}" + "C\0" * 500, "C" * 30_000])
def test_a_sentence_shows_a_long_smiles_cut_and_printable(text):
    with pytest.raises(InputError) as found:
        read_smiles(text, "molecule")
    assert str(found.value).isprintable()
    assert 120 < len(str(found.value)) < 200
