"""Descriptors of molecules that RDKit computes: masses, charges, surface areas, counts of rings and fragments.

A fixed list of names, so that a network reads in every column what it was trained on. Of RDKit's list those are left
out that take longest (QED, information content, eigenvalues of BCUT) or are not defined for every molecule. The values
are float32, NaN where RDKit gives none, an infinite one or one beyond `LARGEST`.

Legend: M molecules, C descriptors.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckgconv.checks import InputError, require, shown
from ckgconv.data.atomwise import ATOMWISE, atomwise
from ckgconv.data.fragments import fragments
from ckgconv.data.molecules import parsed

# Larger values say more about how RDKit counts than about a molecule, and would decide the mean of a column.
LARGEST = 1e6
NAMES = """
MaxAbsEStateIndex MaxEStateIndex MinAbsEStateIndex MinEStateIndex MolWt HeavyAtomMolWt NumValenceElectrons
MaxPartialCharge MinPartialCharge MaxAbsPartialCharge MinAbsPartialCharge Chi0 Chi0n Chi0v Chi1 Chi1n Chi1v Chi2n
Chi2v Chi3n Chi3v Chi4n Chi4v HallKierAlpha Kappa1 Kappa2 Kappa3 LabuteASA PEOE_VSA1 PEOE_VSA10 PEOE_VSA11 PEOE_VSA12
PEOE_VSA13 PEOE_VSA14 PEOE_VSA2 PEOE_VSA3 PEOE_VSA4 PEOE_VSA5 PEOE_VSA6 PEOE_VSA7 PEOE_VSA8 PEOE_VSA9 SMR_VSA1
SMR_VSA10 SMR_VSA2 SMR_VSA3 SMR_VSA4 SMR_VSA5 SMR_VSA6 SMR_VSA7 SMR_VSA8 SMR_VSA9 SlogP_VSA1 SlogP_VSA10 SlogP_VSA11
SlogP_VSA12 SlogP_VSA2 SlogP_VSA3 SlogP_VSA4 SlogP_VSA5 SlogP_VSA6 SlogP_VSA7 SlogP_VSA8 SlogP_VSA9 TPSA EState_VSA1
EState_VSA10 EState_VSA11 EState_VSA2 EState_VSA3 EState_VSA4 EState_VSA5 EState_VSA6 EState_VSA7 EState_VSA8
EState_VSA9 VSA_EState1 VSA_EState10 VSA_EState2 VSA_EState3 VSA_EState4 VSA_EState5 VSA_EState6 VSA_EState7
VSA_EState8 VSA_EState9 FractionCSP3 HeavyAtomCount NHOHCount NOCount NumAliphaticCarbocycles NumAliphaticHeterocycles
NumAliphaticRings NumAmideBonds NumAromaticCarbocycles NumAromaticHeterocycles NumAromaticRings NumAtomStereoCenters
NumBridgeheadAtoms NumHAcceptors NumHDonors NumHeteroatoms NumHeterocycles NumRotatableBonds NumSaturatedCarbocycles
NumSaturatedHeterocycles NumSaturatedRings NumSpiroAtoms NumUnspecifiedAtomStereoCenters Phi RingCount MolLogP MolMR
fr_Al_COO fr_Al_OH fr_Al_OH_noTert fr_ArN fr_Ar_COO fr_Ar_N fr_Ar_NH fr_Ar_OH fr_COO fr_COO2 fr_C_O fr_C_O_noCOO
fr_C_S fr_HOCCN fr_Imine fr_NH0 fr_NH1 fr_NH2 fr_N_O fr_Ndealkylation1 fr_Ndealkylation2 fr_Nhpyrrole fr_SH
fr_aldehyde fr_alkyl_carbamate fr_alkyl_halide fr_allylic_oxid fr_amide fr_amidine fr_aniline fr_aryl_methyl fr_azide
fr_azo fr_barbitur fr_benzene fr_benzodiazepine fr_bicyclic fr_diazo fr_dihydropyridine fr_epoxide fr_ester fr_ether
fr_furan fr_guanido fr_halogen fr_hdrzine fr_hdrzone fr_imidazole fr_imide fr_isocyan fr_isothiocyan fr_ketone
fr_ketone_Topliss fr_lactam fr_lactone fr_methoxy fr_morpholine fr_nitrile fr_nitro fr_nitro_arom
fr_nitro_arom_nonortho fr_nitroso fr_oxazole fr_oxime fr_para_hydroxylation fr_phenol fr_phenol_noOrthoHbond
fr_phos_acid fr_phos_ester fr_piperdine fr_piperzine fr_priamide fr_prisulfonamd fr_pyridine fr_quatN fr_sulfide
fr_sulfonamd fr_sulfone fr_term_acetylene fr_tetrazole fr_thiazole fr_thiocyan fr_thiophene fr_unbrch_alkane fr_urea
"""
DESCRIPTORS: tuple[str, ...] = tuple(NAMES.split())


# What RDKit raises where a molecule has no such value.
UNDEFINED = (ValueError, ArithmeticError, RuntimeError)
# Descriptors that are bins of one histogram, by their stem, and RDKit's function that counts all of them.
HISTOGRAMS = {
    "PEOE_VSA": ("rdkit.Chem.MolSurf", "PEOE_VSA_"),
    "SMR_VSA": ("rdkit.Chem.MolSurf", "SMR_VSA_"),
    "SlogP_VSA": ("rdkit.Chem.MolSurf", "SlogP_VSA_"),
    "EState_VSA": ("rdkit.Chem.EState.EState_VSA", "EState_VSA_"),
    "VSA_EState": ("rdkit.Chem.EState.EState_VSA", "VSA_EState_"),
}
FRAGMENTS = tuple(name for name in DESCRIPTORS if name.startswith("fr_"))


@dataclass(frozen=True)
class Together:
    """Descriptors that RDKit computes in one call."""

    places: NDArray[np.int64]  # among DESCRIPTORS
    values: Callable[[Any], Sequence[float] | NDArray[np.float64]]


def descriptors(smiles: Sequence[str], tick: Callable[[int], None] = lambda count: None) -> NDArray[np.float32]:
    """[M, C] of valid SMILES; `tick` is called with 1 after each."""
    found = np.full((len(smiles), len(DESCRIPTORS)), np.nan, dtype=np.float32)
    for row, each in enumerate(smiles):
        molecule = parsed(each)
        if molecule is None:
            raise InputError(f"{shown(each)} is not a valid SMILES: descriptors need one.")
        found[row] = of_molecule(molecule)
        tick(1)
    return found


def of_molecule(molecule: Any) -> NDArray[np.float64]:
    """[C] of an rdkit molecule."""
    together, places, alone = _functions()
    found = np.full(len(DESCRIPTORS), np.nan)
    for each in together:
        with suppress(*UNDEFINED):
            found[each.places] = each.values(molecule)
    found[places] = [_value(function, molecule) for function in alone]
    found[~(np.abs(found) <= LARGEST)] = np.nan
    return found


def _value(function: Callable[[Any], float], molecule: Any) -> float:
    """A descriptor of a molecule; NaN where it has none."""
    try:
        return float(function(molecule))
    except UNDEFINED:
        return np.nan


@cache
def _functions() -> tuple[list[Together], list[int], list[Callable[[Any], float]]]:
    """What is computed together; and the places and functions of the others."""
    from rdkit.Chem import Descriptors

    known = dict(Descriptors.descList)
    missing = [name for name in DESCRIPTORS if name not in known]
    require(
        not missing,
        f"The installed RDKit has no descriptor {', '.join(missing[:3])}: install the version of constraints.txt.",
    )
    counts = fragments([known[name] for name in FRAGMENTS]).counts
    # The indices come first: their histograms read what was computed for them.
    together = [Together(_places(ATOMWISE), atomwise), *map(_histogram, HISTOGRAMS)]
    together.append(Together(_places(FRAGMENTS), counts))
    shared = {place for each in together for place in each.places.tolist()}
    places = [place for place in range(len(DESCRIPTORS)) if place not in shared]
    return together, places, [known[DESCRIPTORS[place]] for place in places]


def _places(names: Sequence[str]) -> NDArray[np.int64]:
    return np.array([DESCRIPTORS.index(name) for name in names])


def _histogram(stem: str) -> Together:
    """All bins that are among the descriptors."""
    module, name = HISTOGRAMS[stem]
    function = getattr(import_module(module), name)
    bins = [int(each.removeprefix(stem)) for each in DESCRIPTORS if each.startswith(stem)]
    chosen = [number - 1 for number in bins]

    def values(molecule: Any) -> Sequence[float]:
        counted = function(molecule, force=False)
        return [counted[number] for number in chosen]

    return Together(_places([f"{stem}{number}" for number in bins]), values)
