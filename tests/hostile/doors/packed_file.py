"""Packed .npz files: arrays exchanged, cut, of other types and values, headers that lie, any byte changed."""

import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch
from hostile.door import Door
from hostile.mutations import FRACTIONS, WHOLE, damaged
from hostile.networks import predict, small
from hypothesis import strategies as st

from ckgconv.cli.data import statistics
from ckgconv.data import load_packed
from ckgconv.data.packed import SPLITS
from ckgconv.engine.run_data import check_data

Arrays = dict[str, np.ndarray]
DTYPES = ["?", "u1", "i1", "u2", "i4", "u8", "i8", "f2", "f4", "f8", ">i4", ">f8", "c8", "U3", "O", "f16", "M8[s]"]
SHAPES = [(), (0,), (1,), (6,), (7,), (2, 0), (1, 6), (2, 6), (3, 2), (6, 1), (6, 1, 1), (0, 0), (1,) * 9]


def whole(node_targets: bool, splits: bool) -> Arrays:
    """Three molecules of 2, 1 and 3 atoms in the types of ZINC."""
    arrays = {
        "num_nodes": np.array([2, 1, 3], dtype=np.int32),
        "num_edges": np.array([2, 0, 4], dtype=np.int32),
        "edge_index": np.array([[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]], dtype=np.int16),
        "x": np.array([[0], [1], [2], [20], [4], [5]], dtype=np.uint8),
        "edge_attr": np.array([[1], [1], [2], [2], [3], [3]], dtype=np.uint8),
        "y": np.arange(6) % 2 if node_targets else np.array([0.5, -1.0, 2.0], dtype=np.float32),
    }
    if splits:
        arrays |= {f"{name}_idx": np.array([place]) for place, name in enumerate(SPLITS)}
    if node_targets:
        arrays["node_split"] = np.array([0, 1, 2, 0, 1, -1], dtype=np.int8)
    return arrays


@st.composite
def forged(draw: st.DrawFn) -> bytes:
    """A file whose arrays are changed in up to three places."""
    arrays = whole(draw(st.booleans()), draw(st.booleans()))
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 3]))):
        name = draw(st.sampled_from([*arrays, "pos", "edge_weight", "node_splits", "other"]))
        array = arrays.get(name, np.ones((6, 2)))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            arrays.pop(name, None)
        elif kind == 1:
            arrays[name] = _of_dtype(array, draw(st.sampled_from(DTYPES)))
        elif kind == 2:
            arrays[name] = np.resize(array, draw(st.sampled_from(SHAPES)))
        elif kind == 3 and array.size:
            arrays[name] = _with_value(array, draw(st.integers(0, array.size - 1)), draw(WHOLE | FRACTIONS))
        elif kind == 4:
            arrays[name] = arrays[draw(st.sampled_from(list(arrays)))] if arrays else array
        elif kind == 5 and array.ndim:
            arrays[name] = array[: draw(st.integers(0, len(array)))]
        else:
            arrays[name] = np.concatenate([array, array]) if array.ndim else array
    return _written(arrays, draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])))


@st.composite
def claiming(draw: st.DrawFn) -> bytes:
    """A file in which the header of one array claims what is not there, or that unpacks to many zeros."""
    arrays = whole(False, True)
    name = draw(st.sampled_from([*arrays, "other"]))
    shape = tuple(draw(st.lists(st.sampled_from([-1, 0, 1, 2, 6, 2**31, 2**40, 2**62]), max_size=3)))
    header = io.BytesIO()
    described = {
        "shape": shape,
        "fortran_order": draw(st.booleans()),
        "descr": draw(st.sampled_from(["<i8", "|O", "<f4"])),
    }
    np.lib.format.write_array_header_1_0(header, described)
    zeros = bytes(draw(st.sampled_from([0, 8, 48, 2**20, 2**24])))
    return _written(arrays, zipfile.ZIP_DEFLATED, {name: header.getvalue() + zeros})


def _of_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # parts of complex numbers and digits are lost
        return array.astype(dtype)


def _with_value(array: np.ndarray, place: int, value: float) -> np.ndarray:
    wide = array.astype(np.float64 if isinstance(value, float) else object)
    wide.reshape(-1)[place] = value
    return wide if isinstance(value, float) else np.array(wide.tolist())


def _written(arrays: Arrays, method: int, raw: dict[str, bytes] | None = None) -> bytes:
    file = io.BytesIO()
    members = {name: _npy(array) for name, array in arrays.items()} | (raw or {})
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def enter(case: bytes, folder: Path) -> None:
    path = folder / "data.npz"
    path.write_bytes(case)
    data = load_packed(path)
    assert data.node_ptr[-1] == len(data.x)
    assert data.edge_ptr[-1] == data.edge_index.shape[1]
    statistics(data)
    data.limited(1)
    batch = data.batch(torch.arange(data.num_graphs))
    sizes = data.node_ptr.diff()
    ends = batch.batch[batch.edge_index]
    assert (ends[0] == ends[1]).all()  # every edge stays in its graph
    rows = [set(data.target_rows(split).tolist()) for split in SPLITS]
    assert not rows[0] & rows[1] | rows[0] & rows[2] | rows[1] & rows[2]
    assert int(sizes.sum()) == batch.num_nodes
    predict(batch)
    check_data(data, small()[0], 1, "data of the file")


DOOR = Door("packed-files", forged() | claiming() | damaged(forged(), most=3), enter)
