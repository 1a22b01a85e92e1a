"""Where graphs come from: named benchmarks, CSV files of molecules, PyG data sets, packed files."""

from ckgconv.data.catalogue import CATALOGUE, build, data_folder, find, load
from ckgconv.data.packed import PackedDataset, load_packed, save_packed
from ckgconv.data.pyg import from_pyg, from_pyg_masks, from_pyg_splits
from ckgconv.recipe import DataRecipe


def zinc() -> PackedDataset:
    """ZINC-12k, which is part of the package."""
    return load(DataRecipe("zinc"))


__all__ = [
    "CATALOGUE",
    "PackedDataset",
    "build",
    "data_folder",
    "find",
    "from_pyg",
    "from_pyg_masks",
    "from_pyg_splits",
    "load",
    "load_packed",
    "save_packed",
    "zinc",
]
