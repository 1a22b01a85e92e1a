"""Draws the 1,128 molecules of logp.csv: random assemblies of common fragments, target Crippen logP by rdkit.

python examples/make_logp.py > examples/logp.csv
"""

import csv
import random
import sys

from rdkit import Chem
from rdkit.Chem.Crippen import MolLogP

ROWS = 1128
RINGS = ("c1ccc({})cc1", "c1ccnc({})c1", "C1CCC({})CC1", "c1ccc2cc({})ccc2c1", "C1CN({})CCO1", "c1cc({})sc1", "C1CC1{}")
LINKS = ("C", "CC", "CCC", "O", "N", "C(=O)", "C(=O)N", "C(=O)O", "S", "S(=O)(=O)N", "C=C", "C#C", "C(C)", "C(O)")
ENDS = (
    "C",
    "CC",
    "CCCC",
    "C(C)C",
    "O",
    "N",
    "F",
    "Cl",
    "Br",
    "C#N",
    "C(=O)O",
    "OC",
    "N(C)C",
    "C(F)(F)F",
    "S",
    "[N+](=O)[O-]",
)


def draw(rng: random.Random) -> str:
    """One SMILES: an end, links, and with some luck a ring or two."""
    text = rng.choice(ENDS)
    for _ in range(rng.randint(0, 3)):
        text = rng.choice(LINKS) + text
    for _ in range(rng.randint(0, 2)):
        text = rng.choice(LINKS) + rng.choice(RINGS).format(text)
    return text


def main() -> None:
    rng = random.Random(0)
    seen: dict[str, float] = {}
    while len(seen) < ROWS:
        molecule = Chem.MolFromSmiles(draw(rng))
        if molecule is not None and molecule.GetNumAtoms() > 3:
            seen[Chem.MolToSmiles(molecule)] = MolLogP(molecule)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["smiles", "logp"])
    writer.writerows([smiles, f"{value:.4f}"] for smiles, value in seen.items())


if __name__ == "__main__":
    main()
