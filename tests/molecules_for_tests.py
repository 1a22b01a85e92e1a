"""A few molecules with targets, and parameters of estimators that learn them within a fraction of a second."""

import numpy as np

TINY = {
    **{"epochs": 2, "width": 4, "blocks": 1, "settings": {"model.steps": 2}, "descriptors": False},
    **{"random_state": 0, "device": "cpu"},
}
SMILES = [chain + end for chain in ("C", "CC", "CCC", "C1CC1", "c1ccccc1") for end in ("O", "N", "F", "Cl")]
LENGTHS = np.array([float(len(each)) for each in SMILES])
ENDS = np.array(["chlorine" if each.endswith("Cl") else "other" for each in SMILES])
