"""The identity of a run's data: its counts and a digest, by which a saved run refuses other data.

    digest = SHA-256 of every array in turn: its name, its shape, whether it holds integers or floats, its values

Values count, not how they are stored: integers are hashed in the smallest dtype that holds them, floats as float32,
which is what batches contain. Every NaN is the same NaN, and -0 is 0.
"""

import hashlib
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import with_config
from torch import Tensor

from ckgconv.data import CATALOGUE, PackedDataset
from ckgconv.data.packed import SPLITS, narrowed
from ckgconv.recipe.values import KEPT

# Superpixel files hold no edges. They are computed, and another machine may round them otherwise.
COMPUTED = ("edge_ptr", "edge_index", "edge_attr")


@with_config(KEPT)
@dataclass(frozen=True)
class DataIdentity:
    """Which data a run was trained on."""

    name: str  # of the recipe's data set
    given: bool  # whether another data set was given in Python
    graphs: int
    nodes: int
    edges: int
    train: int  # targets of the split
    val: int
    test: int
    digest: str  # SHA-256, in hexadecimal

    @property
    def title(self) -> str:
        """The data in words, after an article."""
        return "data given in Python" if self.given else f"data set {self.name!r}"

    @property
    def counts(self) -> str:
        """What was counted, in words."""
        return (
            f"{self.graphs:,} graphs, {self.nodes:,} nodes and {self.edges:,} edges, with {self.train:,}, {self.val:,} "
            f"and {self.test:,} targets to train, validate and test"
        )

    def difference(self, other: "DataIdentity") -> str:
        """The end of a sentence about other data: in what it differs from this one."""
        if self.counts == other.counts:
            return f"it has the same counts ({self.counts}), but other values"
        return f"it has {other.counts}, not {self.counts}"


def identity_of(data: PackedDataset, name: str, given: bool) -> DataIdentity:
    """The identity of a data set that was read by its name, or `given` in its place."""
    left_out = () if given or name not in CATALOGUE or CATALOGUE[name].pixel_scale is None else COMPUTED
    hashed = hashlib.sha256()
    for field in fields(data):
        value = getattr(data, field.name)
        if value is not None and field.name not in left_out:
            _add(hashed, field.name, value)
    return DataIdentity(
        name=name,
        given=given,
        graphs=data.num_graphs,
        nodes=data.x.shape[0],
        edges=data.edge_index.shape[1],
        **{split: 0 if data.y is None else len(data.target_rows(split)) for split in SPLITS},
        digest=hashed.hexdigest(),
    )


def _add(hashed: Any, name: str, value: Tensor) -> None:
    array = _floats(value) if value.is_floating_point() else _integers(value)
    hashed.update(f"{name} {list(value.shape)} {array.dtype.name};".encode())
    hashed.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8))


def _floats(value: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.float32] = value.detach().float().cpu().numpy() + np.float32(0)  # a copy, in which -0 is 0
    array[np.isnan(array)] = np.nan
    return array


def _integers(value: Tensor) -> NDArray[np.generic]:
    array = value.cpu().numpy()
    return narrowed(array.astype(np.uint8) if array.dtype == bool or not array.size else array)
