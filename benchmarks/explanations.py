"""Compare explanations with a truth that is known: Crippen's logP is a sum over atoms.

    python benchmarks/explanations.py RUN --molecules 60

RUN was trained on a table of logP computed by rdkit, such as examples/logp.csv. For each method: Pearson correlation
between the contribution of every atom (with half of each of its bonds) and the term of that atom and its hydrogens in
Crippen's sum, over all atoms of the first test molecules; the largest residual; seconds per molecule.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import _CalcCrippenContribs

from ckgconv import open_run
from ckgconv.explanation import METHODS, Explainer
from ckgconv.report.source import source_of


def crippen(smiles: str) -> list[float]:
    """The term of every atom, with those of its hydrogens."""
    molecule = Chem.MolFromSmiles(smiles)
    whole = Chem.AddHs(molecule)
    terms = [0.0] * molecule.GetNumAtoms()
    for atom, (logp, _) in zip(whole.GetAtoms(), _CalcCrippenContribs(whole), strict=True):
        heavy = atom.GetIdx() if atom.GetIdx() < len(terms) else atom.GetNeighbors()[0].GetIdx()
        terms[heavy] += logp
    return terms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--molecules", type=int, default=60)
    given = parser.parse_args()
    run = open_run(given.run, "cpu")
    source = source_of([run], given.run)
    assert source.table is not None, "The run was not trained on a table."
    chosen = [source.table.smiles[graph] for graph in source.splits["test"].graphs[: given.molecules].tolist()]
    truth = [term for smiles in chosen for term in crippen(smiles)]
    print(f"{len(chosen)} test molecules, {len(truth)} atoms; test {run.record.metric} {run.record.test:.4f}")
    for method in METHODS:
        explainer, start = Explainer(run, method=method), time.perf_counter()
        found = [explainer(smiles) for smiles in chosen]
        seconds = (time.perf_counter() - start) / len(chosen)
        contributions = [value for each in found for value in each.per_atom]
        correlation = np.corrcoef(contributions, truth)[0, 1]
        residual = max(abs(each.residual) for each in found)
        print(f"{method:21} r {correlation:.3f}, largest residual {residual:.1e}, {seconds:.2f} s per molecule")


if __name__ == "__main__":
    main()
