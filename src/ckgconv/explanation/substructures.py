"""Which substructures raise and lower predictions: contributions summed over fragments, averaged over molecules.

    c(F) = Σ atoms of F + Σ bonds inside F + ½ Σ bonds that lead out of F

brics      pieces between the bonds that BRICS, a set of retrosynthetic rules, would cut
scaffold   the Bemis-Murcko scaffold of rings and linkers, and the side chains that remain
groups     functional groups, by the patterns of rdkit's fragment counts; groups of a molecule may overlap

Pieces of the first two kinds share no atom, so those of a molecule add up to its contributions.

Legend: F fragment, n occurrences.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from ckgconv.checks import check_choice
from ckgconv.explanation.drawing import Picture, draw_grid, printable
from ckgconv.explanation.explainer import Explanation

Kind = Literal["brics", "scaffold", "groups"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DRAWN = 6  # at either end
NAME = 22  # letters


@dataclass(frozen=True)
class Substructure:
    """A fragment in a set of molecules."""

    name: str  # its SMILES, or the name of the group
    mean: float  # contribution of an occurrence
    std: float  # sample s.d. over the occurrences; 0 for one
    n: int  # occurrences
    molecules: int
    example: str  # SMILES of a molecule that has it
    atoms: tuple[int, ...]  # where it is in that molecule


def substructures(explanations: Iterable[Explanation], kind: Kind = "brics", least: int = 1) -> list[Substructure]:
    """Fragments that occur at least `least` times, the one that raises the prediction most first."""
    check_choice("kind", kind, KINDS)
    found: dict[str, list[tuple[float, Explanation, tuple[int, ...]]]] = {}
    for explanation in explanations:
        for name, atoms in FRAGMENTS[kind](_molecule(explanation.smiles)):
            value = contribution(explanation, atoms)
            found.setdefault(name, []).append((value, explanation, atoms))
    result = [_summary(name, places) for name, places in found.items() if len(places) >= least]
    return sorted(result, key=lambda each: -each.mean)


def contribution(explanation: Explanation, atoms: Iterable[int]) -> float:
    """c(F) of the atoms of a fragment."""
    inside = set(atoms)
    bonds = (
        value * ((i in inside) + (j in inside)) / 2
        for (i, j), value in zip(explanation.ends, explanation.bonds, strict=True)
    )
    return sum(explanation.atoms[atom] for atom in inside) + sum(bonds)


def draw_substructures(found: Sequence[Substructure], unit: str, drawn: int = DRAWN) -> str:
    """The fragments that raise and lower the prediction most, each in a molecule that has it, as SVG."""
    ends = list(found) if len(found) <= 2 * drawn else [*found[:drawn], *found[-drawn:]]
    pictures = [
        Picture(
            each.example,
            dict.fromkeys(each.atoms, each.mean),
            dict.fromkeys(_bonds_inside(each.example, each.atoms), each.mean),
            title=f"{printable(each.name, NAME)}: {each.mean:+.2g} (n = {each.n})",
        )
        for each in ends
    ]
    return draw_grid(pictures, f"mean contribution of the substructure to {unit}", 3, 260, 190)


def _summary(name: str, places: Sequence[tuple[float, Explanation, tuple[int, ...]]]) -> Substructure:
    values = [value for value, _, _ in places]
    # The smallest molecule shows the fragment best.
    _, example, atoms = min(places, key=lambda place: len(place[1].atoms))
    return Substructure(
        name=name,
        mean=statistics.fmean(values),
        std=statistics.stdev(values) if len(values) > 1 else 0.0,
        n=len(values),
        molecules=len({explanation.smiles for _, explanation, _ in places}),
        example=example.smiles,
        atoms=atoms,
    )


def _brics(molecule: Any) -> list[tuple[str, tuple[int, ...]]]:
    from rdkit import Chem
    from rdkit.Chem import BRICS

    bonds = [molecule.GetBondBetweenAtoms(i, j).GetIdx() for (i, j), _ in BRICS.FindBRICSBonds(molecule)]
    cut = Chem.FragmentOnBonds(molecule, bonds, addDummies=False) if bonds else molecule
    return [(_smiles(molecule, atoms), tuple(atoms)) for atoms in Chem.GetMolFrags(cut)]


def _scaffold(molecule: Any) -> list[tuple[str, tuple[int, ...]]]:
    from rdkit import Chem
    from rdkit.Chem.Scaffolds.MurckoScaffold import GetScaffoldForMol

    core = set(molecule.GetSubstructMatch(GetScaffoldForMol(molecule)))
    leaving = [
        bond.GetIdx()
        for bond in molecule.GetBonds()
        if (bond.GetBeginAtomIdx() in core) != (bond.GetEndAtomIdx() in core)
    ]
    cut = Chem.FragmentOnBonds(molecule, leaving, addDummies=False) if leaving else molecule
    return [(_smiles(molecule, atoms), tuple(atoms)) for atoms in Chem.GetMolFrags(cut)]


def _groups(molecule: Any) -> list[tuple[str, tuple[int, ...]]]:
    matched = ((name, molecule.GetSubstructMatches(pattern)) for name, pattern in _patterns())
    return [(name, tuple(atoms)) for name, places in matched for atoms in places]


@cache
def _patterns() -> list[tuple[str, Any]]:
    """Names and patterns of rdkit's table of functional groups."""
    from rdkit import Chem, RDConfig

    lines = (Path(RDConfig.RDDataDir) / "FragmentDescriptors.csv").read_text(encoding="utf-8").splitlines()
    cells = [line.split("\t") for line in lines if line.startswith("fr_")]
    named = [(code.removeprefix("fr_"), Chem.MolFromSmarts(smarts.strip('"'))) for code, _, smarts, *_ in cells]
    return [(name, pattern) for name, pattern in named if pattern is not None]


def _molecule(smiles: str) -> Any:
    from rdkit import Chem

    return Chem.MolFromSmiles(smiles)


def _bonds_inside(smiles: str, atoms: Iterable[int]) -> list[int]:
    """Bonds between atoms of a set."""
    inside = set(atoms)
    bonds = _molecule(smiles).GetBonds()
    return [bond.GetIdx() for bond in bonds if {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} <= inside]


def _smiles(molecule: Any, atoms: Sequence[int]) -> str:
    from rdkit import Chem

    found: str = Chem.MolFragmentToSmiles(molecule, list(atoms))
    return found


FRAGMENTS: dict[Kind, Callable[[Any], list[tuple[str, tuple[int, ...]]]]] = {
    "brics": _brics,
    "scaffold": _scaffold,
    "groups": _groups,
}
