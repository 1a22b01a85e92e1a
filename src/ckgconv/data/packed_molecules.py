"""SMILES → molecules, or reasons why not → one packed data set.

Legend: M molecules, T targets, C features.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import InputError, check_instance, require
from ckgconv.data.descriptors import descriptors
from ckgconv.data.molecules import MOST_ATOMS, Featuriser, Molecule, read_smiles
from ckgconv.data.packed import PackedDataset, from_arrays
from ckgconv.recipe import DataRecipe


def read_molecules(
    smiles: Sequence[str], featuriser: Featuriser, most_atoms: int = MOST_ATOMS
) -> tuple[list[Molecule | None], list[str]]:
    """The graph of each SMILES, and a reason; the graph is None where the SMILES is invalid or too large, else the
    reason is "".
    """
    check_instance("The list of SMILES", smiles, Iterable, "a list of texts")
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


def pack_molecules(
    molecules: Sequence[Molecule], targets: Tensor | None = None, recipe: DataRecipe | None = None
) -> PackedDataset:
    """Molecules as one data set with targets [M] or [M, T], all in the split "test".

    With a recipe they have the features that it asks for beside each molecule.
    """
    arrays = {
        "num_nodes": torch.tensor([len(each.x) for each in molecules]),
        "num_edges": torch.tensor([each.edge_index.shape[1] for each in molecules]),
        "edge_index": torch.from_numpy(np.concatenate([each.edge_index for each in molecules], axis=1)),
        "x": torch.from_numpy(np.concatenate([each.x for each in molecules])),
        "edge_attr": torch.from_numpy(np.concatenate([each.edge_attr for each in molecules])),
    }
    given = {"y": targets, "graph_features": None if recipe is None else molecule_features(recipe, molecules)}
    return from_arrays({**arrays, **{name: value for name, value in given.items() if value is not None}})


def molecule_features(recipe: DataRecipe, molecules: Sequence[Molecule]) -> Tensor | None:
    """[M, C] what a network reads beside molecules: descriptors, then the user's own columns; None: nothing."""
    parts = []
    if recipe.descriptors == "rdkit":
        parts.append(torch.from_numpy(descriptors([each.smiles for each in molecules])))
    if recipe.features:
        columns = len(recipe.features)
        require(
            all(len(each.values) == columns for each in molecules),
            f"The network reads {', '.join(recipe.features)} beside each molecule: give their values as features, "
            f"{columns} for each molecule.",
        )
        parts.append(torch.tensor([each.values for each in molecules], dtype=torch.float32))
    return torch.cat(parts, dim=1) if parts else None


def with_values(molecules: Sequence[Molecule | None], values: Sequence[Sequence[float]]) -> list[Molecule | None]:
    """The molecules with a row each of the user's own columns."""
    require(
        len(values) == len(molecules),
        f"features has {len(values)} rows for {len(molecules)} molecules: give a row for each.",
    )
    return [
        None if each is None else replace(each, values=tuple(map(float, row)))
        for each, row in zip(molecules, values, strict=True)
    ]
