"""Where graphs come from."""

from ckgconv.data.packed import PackedDataset, load_packed, zinc

__all__ = ["PackedDataset", "load_packed", "zinc"]
