"""Fragments: the patterns that are not searched for are not there."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors

from ckgconv.data.descriptors import FRAGMENTS
from ckgconv.data.fragments import ELEMENTS, atoms_by_element, fragments, needed_atoms
from ckgconv.data.molecules import parsed

FUNCTIONS = [dict(Descriptors.descList)[name] for name in FRAGMENTS]
SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "C1CCNCC1",
    "C1COCCN1",
    "c1ccncc1",
    "c1ccoc1",
    "c1cscn1",
    "CS(=O)(=O)N",
    "NC(=N)N",
    "CP(=O)(O)O",
    "FC(F)(F)C(Cl)Br",
    "C#CC",
    "N#N=C",
    "[N-]=[N+]=NC",
    "O=[N+]([O-])c1ccccc1",
    "CC1OC1",
    "O=C1CCN1",
    "S=C=NC",
    "CC(C)(C)SC#N",
    "c1nnn[nH]1",
    "[Na+].[Cl-]",
    "C[Se]C",
    "*",
    "CCCCCCCC",
    "C=CCO",
]


@pytest.mark.parametrize("smiles", SMILES)
def test_counts_are_those_of_a_search_for_every_pattern(smiles):
    counted = fragments(FUNCTIONS).counts(parsed(smiles))
    assert counted.tolist() == [function(parsed(smiles)) for function in FUNCTIONS]


@pytest.mark.parametrize(
    ("smarts", "expected"),
    [
        ("[CX3]=[OX1]", {"C": 1, "O": 1}),
        ("c1cscn1", {"c": 3, "n": 1, "s": 1}),
        ("[Cl,Br]-[#6]", {}),  # one of several elements
        ("[!#7]-[C!$(C=O)]", {}),
        ("[NH2]-S(=,-[OX1;+0,-1])-[Si]", {"N": 1, "S": 1}),
        ("[Cl]Br", {"Cl": 1, "Br": 1}),
    ],
)
def test_a_pattern_needs_the_atoms_that_can_only_be_of_one_element(smarts, expected):
    needed = needed_atoms(Chem.MolFromSmarts(smarts))
    assert {element: count for element, count in zip(ELEMENTS, needed.tolist(), strict=True) if count} == expected


def test_aromatic_atoms_are_counted_by_themselves():
    found = dict(zip(ELEMENTS, atoms_by_element(parsed("Cc1cc[nH]c1Cl")).tolist(), strict=True))
    assert {element: count for element, count in found.items() if count} == {"C": 1, "Cl": 1, "c": 4, "n": 1}
    assert np.array_equal(atoms_by_element(parsed("[Xe]")), np.zeros(len(ELEMENTS)))
