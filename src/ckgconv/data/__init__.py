"""Where graphs come from."""

from ckgconv.data.catalogue import CATALOGUE, build, data_folder, find, load
from ckgconv.data.official import from_pyg, from_pyg_masks, from_pyg_splits
from ckgconv.data.packed import PackedDataset, load_packed, save_packed
from ckgconv.recipe import DataRecipe


def zinc() -> PackedDataset:
    """ZINC-12k, which the package carries."""
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
