"""Counts of fragments, RDKit's `fr_…`: how often a molecule holds each of 85 patterns.

A pattern maps its atoms to different atoms of a molecule, so a molecule that has fewer atoms of an element, aromatic or
not, than the pattern names cannot hold it. So comparing two small tables makes most searches unnecessary.

Legend: P patterns, E elements, aromatic ones by themselves.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Elements as SMARTS writes them, in lower case where aromatic.
ELEMENTS = ("C", "N", "O", "S", "P", "F", "Cl", "Br", "I", "c", "n", "o", "s")
COLUMN = {element: place for place, element in enumerate(ELEMENTS)}
# An atom of a pattern that can only be one element: its symbol, then properties that must all hold.
ONE_ELEMENT = re.compile(r"\[?(Cl|Br|[CNOSPFIcnos])(?![a-z])[^,!$]*\]?")


@dataclass(frozen=True)
class Fragments:
    """Patterns, and the atoms [P, E] that each needs at least."""

    patterns: Sequence[Any]
    needed: NDArray[np.int64]

    def counts(self, molecule: Any) -> NDArray[np.float64]:
        """[P] matches in a molecule that differ by more than the order of their atoms."""
        found = np.zeros(len(self.patterns))
        possible = (self.needed <= atoms_by_element(molecule)).all(axis=1)
        for place in np.flatnonzero(possible).tolist():
            found[place] = len(molecule.GetSubstructMatches(self.patterns[place], uniquify=True))
        return found


def fragments(functions: Sequence[Callable[..., int]]) -> Fragments:
    """Of RDKit's functions, each of which has its pattern as a default value."""
    patterns = [signature(each).parameters["pattern"].default for each in functions]
    return Fragments(patterns, np.array([needed_atoms(each) for each in patterns]).reshape(-1, len(ELEMENTS)))


def needed_atoms(pattern: Any) -> NDArray[np.int64]:
    """[E] atoms of each element that a pattern names; an atom that may be one of several elements is not counted."""
    named = [ONE_ELEMENT.fullmatch(atom.GetSmarts()) for atom in pattern.GetAtoms()]
    return _by_element([each[1] for each in named if each is not None])


def atoms_by_element(molecule: Any) -> NDArray[np.int64]:
    """[E] atoms of each element in a molecule."""
    atoms = [molecule.GetAtomWithIdx(index) for index in range(molecule.GetNumAtoms())]
    return _by_element([each.GetSymbol().lower() if each.GetIsAromatic() else each.GetSymbol() for each in atoms])


def _by_element(symbols: Sequence[str]) -> NDArray[np.int64]:
    found = np.zeros(len(ELEMENTS), dtype=np.int64)
    for symbol, count in Counter(symbols).items():
        if symbol in COLUMN:
            found[COLUMN[symbol]] = count
    return found
