"""Clusters of similar molecules, after Butina (1999), on Morgan fingerprints.

    neighbours of a molecule    molecules at a Tanimoto distance 1 - s(a, b) of at most d
    clusters                    the molecule with most neighbours and all of these, then the same of what is left; the
                                numbers of neighbours are those among all molecules

Legend: M molecules.
"""

from collections.abc import Sequence

import numpy as np

from ckgconv.checks import require
from ckgconv.data.fingerprints import BITS, RADIUS
from ckgconv.data.molecules import rdkit_chem

# All pairs are compared, and at worst all of them are neighbours that must be kept.
MOST_MOLECULES = 10_000


def butina_clusters(smiles: Sequence[str], distance: float) -> list[int]:
    """The number of the cluster of each molecule; the same molecule is always in one cluster."""
    count = len(smiles)
    require(
        count <= MOST_MOLECULES,
        f"The table has {count:,} molecules, and the Butina split compares all pairs of at most {MOST_MOLECULES:,}: "
        f"use --split scaffold_balanced, or a --group-column.",
    )
    chem = rdkit_chem()
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from rdkit.DataStructs import BulkTanimotoSimilarity

    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    prints = [generator.GetFingerprint(chem.MolFromSmiles(each)) for each in smiles]
    least = 1 - distance - 1e-12
    near = [
        np.flatnonzero(np.asarray(BulkTanimotoSimilarity(each, prints)) >= least).astype(np.int32) for each in prints
    ]
    cluster = np.full(count, -1, dtype=np.int64)
    order = sorted(range(count), key=lambda row: (-len(near[row]), row))
    for row in order:
        if cluster[row] < 0:
            members = near[row]
            cluster[members[cluster[members] < 0]] = row
            cluster[row] = row
    return list(cluster.tolist())
