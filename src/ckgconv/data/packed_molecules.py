"""Texts of SMILES → molecules with reasons → one packed data set.

Legend: M molecules, T targets.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import InputError
from ckgconv.data.molecules import MOST_ATOMS, Featuriser, Molecule, read_smiles
from ckgconv.data.packed import PackedDataset, from_arrays


def read_molecules(
    smiles: Sequence[str], featuriser: Featuriser, most_atoms: int = MOST_ATOMS
) -> tuple[list[Molecule | None], list[str]]:
    """The graph of each SMILES, and a reason; the graph is None where the SMILES is invalid or too large, else the
    reason is "".
    """
    molecules: list[Molecule | None] = []
    reasons = []
    for each in smiles:
        try:
            molecules.append(read_smiles(each, featuriser, most_atoms))
            reasons.append("")
        except InputError as error:
            molecules.append(None)
            reasons.append(str(error))
    return molecules, reasons


def pack_molecules(molecules: Sequence[Molecule], targets: Tensor | None = None) -> PackedDataset:
    """Molecules as one data set with targets [M] or [M, T], all in the split "test"."""
    arrays = {
        "num_nodes": torch.tensor([len(each.x) for each in molecules]),
        "num_edges": torch.tensor([each.edge_index.shape[1] for each in molecules]),
        "edge_index": torch.from_numpy(np.concatenate([each.edge_index for each in molecules], axis=1)),
        "x": torch.from_numpy(np.concatenate([each.x for each in molecules])),
        "edge_attr": torch.from_numpy(np.concatenate([each.edge_attr for each in molecules])),
    }
    return from_arrays(arrays if targets is None else {**arrays, "y": targets})
