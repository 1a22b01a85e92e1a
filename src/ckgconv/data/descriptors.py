"""Descriptors of molecules that RDKit computes: masses, charges, surface areas, counts of rings and fragments.

A fixed list of names, so that a network reads in every column what it was trained on. Of RDKit's list those are left
out that take longest (QED, information content, eigenvalues of BCUT) or are not defined for every molecule. The values
are float32, NaN where RDKit gives none, an infinite one or one beyond `LARGEST`.

Legend: M molecules, C descriptors.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckgconv.checks import InputError, require
from ckgconv.data.molecules import rdkit_chem

# Larger values say more about how RDKit counts than about a molecule, and would decide the mean of a column.
LARGEST = 1e6
PROPERTIES = """
MaxAbsEStateIndex MaxEStateIndex MinAbsEStateIndex MinEStateIndex MolWt HeavyAtomMolWt NumValenceElectrons
MaxPartialCharge MinPartialCharge MaxAbsPartialCharge MinAbsPartialCharge Chi0 Chi0n Chi0v Chi1 Chi1n Chi1v Chi2n
Chi2v Chi3n Chi3v Chi4n Chi4v HallKierAlpha Kappa1 Kappa2 Kappa3 LabuteASA PEOE_VSA1 PEOE_VSA10 PEOE_VSA11
PEOE_VSA12 PEOE_VSA13 PEOE_VSA14 PEOE_VSA2 PEOE_VSA3 PEOE_VSA4 PEOE_VSA5 PEOE_VSA6 PEOE_VSA7 PEOE_VSA8 PEOE_VSA9
SMR_VSA1 SMR_VSA10 SMR_VSA2 SMR_VSA3 SMR_VSA4 SMR_VSA5 SMR_VSA6 SMR_VSA7 SMR_VSA8 SMR_VSA9 SlogP_VSA1 SlogP_VSA10
SlogP_VSA11 SlogP_VSA12 SlogP_VSA2 SlogP_VSA3 SlogP_VSA4 SlogP_VSA5 SlogP_VSA6 SlogP_VSA7 SlogP_VSA8 SlogP_VSA9 TPSA
EState_VSA1 EState_VSA10 EState_VSA11 EState_VSA2 EState_VSA3 EState_VSA4 EState_VSA5 EState_VSA6 EState_VSA7
EState_VSA8 EState_VSA9 VSA_EState1 VSA_EState10 VSA_EState2 VSA_EState3 VSA_EState4 VSA_EState5 VSA_EState6
VSA_EState7 VSA_EState8 VSA_EState9 FractionCSP3 HeavyAtomCount NHOHCount NOCount NumAliphaticCarbocycles
NumAliphaticHeterocycles NumAliphaticRings NumAmideBonds NumAromaticCarbocycles NumAromaticHeterocycles
NumAromaticRings NumAtomStereoCenters NumBridgeheadAtoms NumHAcceptors NumHDonors NumHeteroatoms NumHeterocycles
NumRotatableBonds NumSaturatedCarbocycles NumSaturatedHeterocycles NumSaturatedRings NumSpiroAtoms
NumUnspecifiedAtomStereoCenters Phi RingCount MolLogP MolMR
""".split()
FRAGMENTS = """
Al_COO Al_OH Al_OH_noTert ArN Ar_COO Ar_N Ar_NH Ar_OH COO COO2 C_O C_O_noCOO C_S HOCCN Imine NH0 NH1 NH2 N_O
Ndealkylation1 Ndealkylation2 Nhpyrrole SH aldehyde alkyl_carbamate alkyl_halide allylic_oxid amide amidine aniline
aryl_methyl azide azo barbitur benzene benzodiazepine bicyclic diazo dihydropyridine epoxide ester ether furan
guanido halogen hdrzine hdrzone imidazole imide isocyan isothiocyan ketone ketone_Topliss lactam lactone methoxy
morpholine nitrile nitro nitro_arom nitro_arom_nonortho nitroso oxazole oxime para_hydroxylation phenol
phenol_noOrthoHbond phos_acid phos_ester piperdine piperzine priamide prisulfonamd pyridine quatN sulfide sulfonamd
sulfone term_acetylene tetrazole thiazole thiocyan thiophene unbrch_alkane urea
""".split()
DESCRIPTORS: tuple[str, ...] = (*PROPERTIES, *(f"fr_{name}" for name in FRAGMENTS))


def descriptors(smiles: Sequence[str], tick: Callable[[int], None] = lambda count: None) -> NDArray[np.float32]:
    """[M, C] of valid SMILES; `tick` is called with 1 after each."""
    found = np.full((len(smiles), len(DESCRIPTORS)), np.nan, dtype=np.float32)
    chem, functions = rdkit_chem(), _functions()
    for row, each in enumerate(smiles):
        molecule = chem.MolFromSmiles(each)
        if molecule is None:
            raise InputError(f"{each[:80]!r} is not a valid SMILES: descriptors need one.")
        found[row] = [_value(function, molecule) for function in functions]
        tick(1)
    return found


def _value(function: Callable[[Any], float], molecule: Any) -> float:
    """A descriptor of a molecule; NaN where it has none."""
    try:
        value = float(function(molecule))
    except (ValueError, ZeroDivisionError, ArithmeticError, RuntimeError):
        return np.nan
    return value if abs(value) <= LARGEST else np.nan


@cache
def _functions() -> tuple[Callable[[Any], float], ...]:
    from rdkit.Chem import Descriptors

    known = dict(Descriptors.descList)
    missing = [name for name in DESCRIPTORS if name not in known]
    require(
        not missing,
        f"The installed RDKit has no descriptor {', '.join(missing[:3])}: install the version of constraints.txt.",
    )
    return tuple(known[name] for name in DESCRIPTORS)
