"""SMILES → node and edge attributes, by rdkit.

    molecule   nine atom and three bond columns, with the vocabularies of the molecular property benchmarks
    zinc       one atom type (element, explicit hydrogens, charge) and one kekulised bond type, as in ZINC-12k

Atom columns: atomic number - 1, chirality, total degree, charge + 5, hydrogens, radical electrons, hybridisation,
aromatic, in ring. Bond columns: type, stereo, conjugated. A value outside a vocabulary is mapped to its last entry.

Legend: n atoms, b bonds; every bond is two directed edges, one after the other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ckgconv.checks import InputError, check_instance, shown
from ckgconv.pairs.memory import GIGABYTE, SMALL, free_bytes

Featuriser = Literal["molecule", "zinc"]

# All pairs of a molecule are computed. A larger one is left out of a file, which says so (`data.most_atoms`).
MOST_ATOMS = 1000
LETTERS_PER_ATOM = 20
# Most molecules that are kept parsed: about those of a chunk.
MOST_PARSED = 1024
# Text copied from a page may contain marks that nobody sees.
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
HYDROGEN = 1
# Of descriptors, 35 to 45 were measured for chains of 3,000 and 6,000 atoms; coordinates of all pairs need more.
BYTES_PER_PAIR = 40
ATOM_SIZES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
BOND_SIZES = (5, 6, 2)
CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
BOND_TYPES = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
BOND_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")
# The benchmark's dictionary of atom types; the recipe embeds the first 21, the only ones that occur.
ZINC_ATOMS = [
    "C",
    "O",
    "N",
    "F",
    "C H1",
    "S",
    "Cl",
    "O -",
    "N H1 +",
    "Br",
    "N H3 +",
    "N H2 +",
    "N +",
    "N -",
    "S -",
    "I",
    "P",
    "O H1 +",
    "N H1 -",
    "O +",
    "S +",
    "P H1",
    "P H2",
    "C H2 -",
    "P +",
    "S H1 +",
    "C H1 -",
    "P H1 +",
]
ZINC_BONDS = {"SINGLE": 1, "DOUBLE": 2, "TRIPLE": 3}


@dataclass(frozen=True)
class Molecule:
    """Attributes of one molecule."""

    x: NDArray[np.uint8]  # [n, F]
    edge_index: NDArray[np.int16] | NDArray[np.int32]  # [2, 2b]
    edge_attr: NDArray[np.uint8]  # [2b, Fe]
    smiles: str = ""  # what it was read from, for descriptors
    values: tuple[float, ...] = ()  # of the user's own columns (`data.features`), NaN where unknown


def read_smiles(smiles: str, featuriser: Featuriser, most_atoms: int = MOST_ATOMS) -> Molecule:
    """The graph of a SMILES string.

    Raises InputError where the string is invalid, an atom or bond is unknown, or there are more than `most_atoms`.
    """
    smiles = plain_smiles(smiles)
    return replace(molecule_graph(parse_smiles(smiles, most_atoms), featuriser), smiles=smiles)


def plain_smiles(smiles: str) -> str:
    """A SMILES, and a name that may follow it, without marks that no one sees."""
    check_instance("The SMILES", smiles, str, "a text")
    smiles = smiles.strip().strip(INVISIBLE).strip()
    # rdkit leaves out other letters at the ends of a SMILES, and would read another molecule.
    if not "".join(smiles.split(maxsplit=1)[:1]).isascii():
        raise InputError(f"{shown(smiles)} is not a valid SMILES: it has letters that are not ASCII.")
    return smiles.encode("utf-8", "replace").decode()


def parse_smiles(smiles: str, most_atoms: int = MOST_ATOMS) -> Any:
    """The rdkit molecule of a SMILES string; raises InputError where it is invalid or larger than `most_atoms`."""
    chem = rdkit_chem()
    smiles = plain_smiles(smiles)
    name = shown(smiles)
    if len(smiles) > LETTERS_PER_ATOM * most_atoms:
        raise InputError(f"{name} has {len(smiles):,} letters, too many for the {most_atoms:,} atoms allowed.")
    if len(smiles) > most_atoms:  # counted before rdkit looks for rings and stereo, which takes long
        _check_atoms(chem.MolFromSmiles(smiles, sanitize=False), name, most_atoms)
    molecule = parsed(smiles) if smiles else None
    if molecule is None:
        raise InputError(f"{name} is not a valid SMILES." if smiles else "The SMILES is empty.")
    if molecule.GetNumAtoms() == 0:
        raise InputError(f"{name} has no atom.")
    _check_atoms(molecule, name, most_atoms)
    _check_memory(molecule.GetNumAtoms(), name)
    return molecule


@lru_cache(MOST_PARSED)
def parsed(smiles: str) -> Any:
    """The rdkit molecule of a SMILES string, None where it is invalid; shared, so that no one may change it.

    Graph, descriptors and fingerprint of a molecule are computed one after the other for a chunk of molecules, and each
    of which would otherwise parse its SMILES again.
    """
    return rdkit_chem().MolFromSmiles(smiles)


def molecule_graph(molecule: Any, featuriser: Featuriser) -> Molecule:
    """The graph of an rdkit molecule."""
    count = molecule.GetNumAtoms()
    atom, bond = FEATURISERS[featuriser]
    if featuriser == "zinc":
        molecule = rdkit_chem().Mol(molecule)
        rdkit_chem().Kekulize(molecule)
    # Accessed by number, since rdkit's own iterators take ten times as long.
    atoms = np.array([atom(molecule.GetAtomWithIdx(index)) for index in range(count)], dtype=np.uint8)
    bonds = [molecule.GetBondWithIdx(index) for index in range(molecule.GetNumBonds())]
    number = np.int16 if count <= np.iinfo(np.int16).max else np.int32
    ends = np.array([(each.GetBeginAtomIdx(), each.GetEndAtomIdx()) for each in bonds], dtype=number).reshape(-1, 2)
    edges = np.concatenate([ends, ends[:, ::-1]], axis=1).reshape(-1, 2).T
    width = len(BOND_SIZES) if featuriser == "molecule" else 1
    columns = np.array([bond(each) for each in bonds], dtype=np.uint8).reshape(-1, width)
    return Molecule(atoms, np.ascontiguousarray(edges), columns.repeat(2, axis=0))


def _check_atoms(molecule: Any, name: str, most_atoms: int) -> None:
    """Refuse a molecule with more atoms than allowed; hydrogens, which rdkit leaves out later, do not count."""
    count = 0 if molecule is None else molecule.GetNumAtoms()
    if count > most_atoms:
        count = sum(1 for atom in molecule.GetAtoms() if atom.GetAtomicNum() != HYDROGEN)
    if count > most_atoms:
        raise InputError(f"{name} has {count:,} atoms, more than the {most_atoms:,} allowed (data.most_atoms).")


def _check_memory(count: int, name: str) -> None:
    """Refuse a molecule whose pairs of atoms do not fit into memory, however many atoms are allowed."""
    needed = count**2 * BYTES_PER_PAIR
    free = free_bytes(torch.device("cpu")) if needed >= SMALL else None
    if free is not None and needed > free:
        raise InputError(
            f"{name} has {count:,} atoms, whose pairs need about {needed / GIGABYTE:,.1f} GB, and "
            f"{free / GIGABYTE:,.1f} GB are free: leave it out."
        )


def scaffold(smiles: str) -> str:
    """The Bemis-Murcko scaffold of a valid SMILES; empty for a molecule without rings."""
    rdkit_chem()
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    found: str = MurckoScaffoldSmiles(smiles=smiles, includeChirality=False)
    return found


def canonical(smiles: str) -> str | None:
    """The canonical SMILES of a molecule; None where it is not valid."""
    molecule = rdkit_chem().MolFromSmiles(smiles)
    found: str | None = None if molecule is None else rdkit_chem().MolToSmiles(molecule)
    return found


def _molecule_atom(atom: Any) -> list[int]:
    chirality, hybridisation, _, _ = _vocabularies()
    number, degree, charge = atom.GetAtomicNum(), atom.GetTotalDegree(), atom.GetFormalCharge()
    hydrogens, radicals = atom.GetTotalNumHs(), atom.GetNumRadicalElectrons()
    return [
        number - 1 if 1 <= number <= 118 else 118,
        chirality.get(atom.GetChiralTag(), len(CHIRALITY)),
        min(degree, 11),
        charge + 5 if -5 <= charge <= 5 else 11,
        min(hydrogens, 9),
        min(radicals, 5),
        hybridisation.get(atom.GetHybridization(), len(HYBRIDISATION)),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]


def _molecule_bond(bond: Any) -> list[int]:
    _, _, types, stereo = _vocabularies()
    return [
        types.get(bond.GetBondType(), len(BOND_TYPES)),
        stereo.get(bond.GetStereo(), len(BOND_STEREO) - 1),
        int(bond.GetIsConjugated()),
    ]


@cache
def _vocabularies() -> tuple[dict[Any, int], dict[Any, int], dict[Any, int], dict[Any, int]]:
    """Position of rdkit's chirality, hybridisation, bond type and stereo; comparing their names takes long."""
    chem = rdkit_chem()
    known = (
        (chem.ChiralType, CHIRALITY),
        (chem.HybridizationType, HYBRIDISATION),
        (chem.BondType, BOND_TYPES),
        (chem.BondStereo, BOND_STEREO[:-1]),
    )
    chirality, hybridisation, types, stereo = (
        {kind.names[name]: place for place, name in enumerate(vocabulary)} for kind, vocabulary in known
    )
    return chirality, hybridisation, types, stereo


def _zinc_atom(atom: Any) -> list[int]:
    charge = {0: "", 1: " +", -1: " -"}.get(atom.GetFormalCharge(), " ?")
    hydrogens = atom.GetNumExplicitHs()
    # SMILES writes the hydrogen of a neutral aromatic nitrogen, but the dictionary has no type "N H1".
    names = ([f"{atom.GetSymbol()} H{hydrogens}{charge}"] if hydrogens else []) + [f"{atom.GetSymbol()}{charge}"]
    for name in names:
        if name in ZINC_ATOMS:
            return [ZINC_ATOMS.index(name)]
    raise InputError(f"Atom {names[0]!r} is not among the types of ZINC-12k.")


def _zinc_bond(bond: Any) -> list[int]:
    kind = str(bond.GetBondType())
    if kind not in ZINC_BONDS:
        raise InputError(f"Bond {kind.lower()!r} is not among the types of ZINC-12k.")
    return [ZINC_BONDS[kind]]


FEATURISERS: dict[Featuriser, tuple[Callable[[Any], list[int]], Callable[[Any], list[int]]]] = {
    "molecule": (_molecule_atom, _molecule_bond),
    "zinc": (_zinc_atom, _zinc_bond),
}


@cache
def rdkit_chem() -> Any:
    """rdkit's module of molecules, which prints nothing."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError as error:
        raise InputError("Reading SMILES needs rdkit: install it with 'pip install rdkit'.") from error
    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]  # errors are reported by InputError
    return Chem
