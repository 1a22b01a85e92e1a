"""Graphs in Python: PyG data whose attributes are tensors of any dtype and shape, or no tensors at all."""

import json
from pathlib import Path
from typing import Any

import torch
from hostile.door import Door
from hostile.mutations import FRACTIONS, WHOLE
from hostile.networks import predict
from hypothesis import strategies as st
from torch_geometric.data import Data

from ckgconv.checks import InputError
from ckgconv.data import from_pyg, from_pyg_masks

DTYPES = [
    "bool",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "uint32",
]
NAMES = ["x", "edge_index", "edge_attr", "edge_weight", "pos", "y", "num_nodes", "train_mask", "val_mask", "test_mask"]
WHOLE_GRAPH = {
    "x": {"dtype": "int64", "shape": [3, 1], "values": [0, 1, 2]},
    "edge_index": {"dtype": "int64", "shape": [2, 4], "values": [0, 1, 1, 2, 1, 0, 2, 1]},
    "edge_attr": {"dtype": "int64", "shape": [4, 1], "values": [1, 2]},
    "y": {"dtype": "float32", "shape": [1], "values": [0.5]},
}
PLAIN = st.none() | st.just("text") | st.just([1, 2]) | WHOLE


@st.composite
def tensor(draw: st.DrawFn) -> dict[str, Any]:
    """How to make a tensor: values are repeated to fill the shape."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 6]), max_size=3))
    values = draw(st.lists(WHOLE, min_size=1, max_size=8) | st.lists(FRACTIONS, min_size=1, max_size=8))
    return {
        "dtype": draw(st.sampled_from(DTYPES)),
        "shape": shape,
        "values": values,
        "layout": draw(st.sampled_from(["strided"] * 8 + ["sparse", "meta", "grad"])),
    }


@st.composite
def graphs(draw: st.DrawFn) -> bytes:
    """One to three graphs, each with up to three attributes exchanged."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        graph: dict[str, Any] = dict(WHOLE_GRAPH)
        for _ in range(draw(st.integers(0, 3))):
            graph[draw(st.sampled_from(NAMES))] = draw(tensor() | PLAIN)
        found.append(graph)
    return json.dumps(found).encode()


def made(value: Any) -> Any:
    """The tensor that a case describes; anything else as it is."""
    if not isinstance(value, dict):
        return value
    dtype = getattr(torch, value["dtype"])
    count = int(torch.tensor(value["shape"]).prod()) if value["shape"] else 1
    values = (value["values"] * (count + 1))[:count]
    wide = torch.tensor(values, dtype=torch.float64 if any(isinstance(each, float) for each in values) else torch.int64)
    result = wide.to(dtype).reshape(value["shape"])
    layout = value.get("layout", "strided")
    # Torch makes no other sparse tensors.
    if layout == "sparse" and result.dim() == 2 and not dtype.is_complex and dtype != torch.uint32:
        return result.to_sparse()
    if layout == "grad" and dtype.is_floating_point:
        return result.requires_grad_()
    return result.to("meta") if layout == "meta" else result


def enter(case: bytes, folder: Path) -> None:
    made_graphs = []
    for graph in json.loads(case):
        data = Data()
        for name, value in graph.items():
            data[name] = made(value)
        made_graphs.append(data)
    masked = any("train_mask" in graph for graph in json.loads(case))
    packed = from_pyg_masks(*made_graphs) if masked else from_pyg(made_graphs)
    assert packed.num_graphs == len(made_graphs)
    batch = packed.batch(torch.arange(packed.num_graphs))
    assert batch.num_nodes == sum(len(data.x) for data in made_graphs)
    predict(batch)
    for data in made_graphs:  # as it is, without packing
        try:
            predict(data)
        except InputError:
            continue


DOOR = Door("python-graphs", graphs(), enter)
