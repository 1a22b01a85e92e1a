"""The door of packed data: every array of a data set is checked here, once, and nowhere else.

    shapes    that the arrays exist, and agree on G graphs, N nodes and E edges; a header is enough
    values    that counts add up, edges stay inside their graph, numbers are usable and splits are disjoint

Error messages name the array; the reader of a file adds its path.

Legend: G graphs, N nodes, E edges, S splits of the same nodes.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ckgconv.checks import InputError, require

Array = NDArray[Any]
SPLITS = ("train", "val", "test")
# `node_split` of a node that is in no split.
NO_SPLIT = -1
NEEDED = ("num_nodes", "num_edges", "edge_index", "x")
SPLIT_ARRAYS = tuple(f"{name}_idx" for name in SPLITS)
GRAPHWISE = ("graph_features", "target_weight")
NAMES = (*NEEDED, "edge_attr", "edge_weight", "pos", "y", "node_split", *GRAPHWISE, *SPLIT_ARRAYS)
# Its square, summed over a few hundred rows, still fits into float32.
LARGEST = 1e18

DTYPES = {
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
}


class Described(Protocol):
    """An array, or its header."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> "np.dtype[Any]": ...


def check_shapes(arrays: Mapping[str, Described]) -> None:
    """Refuse arrays that cannot belong together."""
    missing = [name for name in NEEDED if name not in arrays]
    require(not missing, f"It lacks the arrays {', '.join(sorted(missing))}: add them, or write it by save_packed.")
    for name in ("num_nodes", "num_edges", "edge_index", *SPLIT_ARRAYS, "node_split"):
        if name in arrays:
            kind = arrays[name].dtype
            require(kind.kind in "iu", f"{name} has dtype {kind}: give whole numbers, stored as integers.")
    _check_rank(arrays)
    graphs, nodes = arrays["num_nodes"].shape[0], arrays["x"].shape[0]
    edges = arrays["edge_index"].shape[1]
    require(graphs > 0, "The data set has no graph: give at least one.")
    for name, rows, what in (
        ("num_edges", graphs, "graph"),
        ("edge_attr", edges, "edge"),
        ("edge_weight", edges, "edge"),
        ("pos", nodes, "node"),
        ("node_split", nodes, "node"),
        ("graph_features", graphs, "graph"),
        ("target_weight", graphs, "graph"),
    ):
        if name in arrays:
            shape = list(arrays[name].shape)
            expected = [rows, *shape[1:]]
            require(shape == expected, f"{name} has shape {shape}, expected {expected}: give one row per {what}.")
    _check_targets(arrays, graphs, nodes)


def check_values(arrays: Mapping[str, Array]) -> None:
    """Refuse values that describe no graphs; the shapes are as `check_shapes` wants them."""
    nodes, edges = arrays["x"].shape[0], arrays["edge_index"].shape[1]
    check_counts("num_nodes", arrays["num_nodes"], nodes, "rows of x")
    check_counts("num_edges", arrays["num_edges"], edges, "columns of edge_index")
    _check_edges(arrays["edge_index"], arrays["num_nodes"], arrays["num_edges"])
    for name in ("x", "edge_attr", "pos"):
        if name in arrays:
            _check_size(name, arrays[name], missing=False)
    for name in ("edge_weight", "target_weight"):
        if name in arrays:
            _check_weights(name, arrays[name])
    for name in ("y", "graph_features"):
        if name in arrays:
            _check_size(name, arrays[name], missing=True)
    if "node_split" in arrays:
        _check_node_split(arrays["node_split"])
    _check_splits(arrays, len(arrays["num_nodes"]))


def signed(name: str, array: Array) -> Array:
    """Unsigned integers of more than 8 bits as signed ones, which torch computes with."""
    if array.dtype.kind != "u" or array.dtype.itemsize == 1:
        return array
    highest = int(array.max(initial=0))
    require(
        highest <= np.iinfo(np.int64).max, f"{name} contains {highest}, which needs more than 63 bits: renumber it."
    )
    return array.astype(np.int32 if array.dtype.itemsize == 2 else np.int64)


def in_numpy(name: str, values: object) -> Array:
    """The values of a tensor, wherever it is, for the checks."""
    if not isinstance(values, Tensor):
        raise InputError(f"{name} is a {type(values).__name__}, not a tensor: convert it with torch.as_tensor.")
    usable = (
        not values.is_nested
        and values.layout == torch.strided
        and values.dtype in DTYPES
        and values.device.type != "meta"
    )
    require(usable, f"{name} is a tensor of {values.dtype} ({values.layout}): give a dense one of numbers.")
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


def check_counts(name: str, counts: Array, total: int, what: str) -> None:
    """Refuse counts that are negative or do not add up to a total."""
    lowest, highest = int(counts.min()), int(counts.max())
    require(lowest >= 0, f"{name} contains {lowest}: give counts of zero or more.")
    # None may exceed the total, so that their sum cannot overflow.
    summed = int(counts.sum(dtype=np.int64)) if highest <= total else highest
    require(summed == total, f"{name} adds up to {summed:,}, but there are {total:,} {what}: correct one of them.")


def _check_rank(arrays: Mapping[str, Described]) -> None:
    for name, ranks in (
        *(
            (name, (1,))
            for name in ("num_nodes", "num_edges", "edge_weight", "node_split", "target_weight", *SPLIT_ARRAYS)
        ),
        *((name, (2,)) for name in ("edge_index", "x", "edge_attr", "pos", "graph_features")),
        ("y", (1, 2)),
    ):
        if name in arrays:
            shape = list(arrays[name].shape)
            wanted = " or ".join(map(str, ranks))
            require(len(shape) in ranks, f"{name} has shape {shape}: give an array of {wanted} dimensions.")
    rows = arrays["edge_index"].shape[0]
    require(rows == 2, f"edge_index has {rows} rows: give two, sources above targets.")


def _check_targets(arrays: Mapping[str, Described], graphs: int, nodes: int) -> None:
    rows = arrays["y"].shape[0] if "y" in arrays else None
    if "node_split" in arrays:
        found = "no" if rows is None else rows
        require(rows == nodes, f"node_split splits {nodes} nodes, but y has {found} rows: give one target per node.")
    require(
        rows in (None, graphs, nodes),
        f"y has {rows} rows for {graphs} graphs with {nodes} nodes: give one row per graph or one per node.",
    )


def _check_edges(edge_index: Array, num_nodes: Array, num_edges: Array) -> None:
    """Refuse ends outside 0 … n - 1 of their graph."""
    if not edge_index.size:
        return
    lowest = int(edge_index.min())
    require(lowest >= 0, f"edge_index contains {lowest}: node numbers begin at 0 in each graph.")
    # Compared in the dtype of the edges, which is fastest: no end exceeds the largest value of that.
    last = np.clip(num_nodes - 1, 0, np.iinfo(edge_index.dtype).max).astype(edge_index.dtype)
    wrong = edge_index > np.repeat(last, num_edges)
    empty = num_edges[num_nodes == 0]
    if not wrong.any() and not empty.any():
        return
    owner = np.repeat(np.arange(len(num_nodes)), num_edges)
    column = int(np.flatnonzero(wrong.any(0) | (num_nodes[owner] == 0))[0])
    graph = int(owner[column])
    raise InputError(
        f"edge_index contains {int(edge_index[:, column].max())} in graph {graph}, which has {int(num_nodes[graph])} "
        f"nodes: node numbers begin at 0 in each graph."
    )


def _check_size(name: str, values: Array, missing: bool) -> None:
    """Refuse infinite and huge values, and NaN unless it says that a value is missing."""
    if values.dtype.kind != "f" or not values.size:
        return
    least, most = (np.fmin.reduce, np.fmax.reduce) if missing else (np.min, np.max)
    low, high = float(least(values, axis=None)), float(most(values, axis=None))
    if missing and np.isnan(low):
        return
    if not (low >= -LARGEST and high <= LARGEST):
        worst = low if not low >= -LARGEST else high
        remedy = "values are finite, NaN where unknown" if missing else "it must be finite: replace missing values"
        raise InputError(
            f"{name} contains {worst}, but {remedy}, and at most {LARGEST:g} in size: rescale larger ones."
        )


def _check_weights(name: str, weights: Array) -> None:
    require(weights.dtype.kind == "f", f"{name} has dtype {weights.dtype}: give floating-point weights.")
    _check_size(name, weights, missing=False)
    lowest = weights.min(initial=0)
    require(lowest >= 0, f"{name} contains {lowest}: give weights of zero or more.")


def _check_node_split(node_split: Array) -> None:
    low, high = int(node_split.min(initial=0)), int(node_split.max(initial=0))
    worst = low if low < NO_SPLIT else high
    require(
        low >= NO_SPLIT and high < len(SPLITS),
        f"node_split contains {worst}: give 0 for train, 1 for val, 2 for test, {NO_SPLIT} for none, as integers.",
    )


def _check_splits(arrays: Mapping[str, Array], graphs: int) -> None:
    """Refuse graph numbers that do not exist or come twice; nodes with splits of their own let graphs be in several."""
    owner = np.full(graphs, -1, dtype=np.int8)
    for place, name in enumerate(SPLIT_ARRAYS):
        numbers = arrays.get(name)
        if numbers is None or not len(numbers):
            continue
        low, high = int(numbers.min()), int(numbers.max())
        require(
            low >= 0 and high < graphs,
            f"{name} contains {low if low < 0 else high}, but graph numbers lie in 0 … {graphs - 1}: correct them.",
        )
        again = len(numbers) > graphs or bool((np.bincount(numbers, minlength=graphs) > 1).any())
        require(not again, f"{name} names a graph twice: name each once.")
        taken = owner[numbers]
        if "node_split" not in arrays and bool((taken >= 0).any()):
            first = int(numbers[np.flatnonzero(taken >= 0)[0]])
            other = SPLIT_ARRAYS[int(owner[first])]
            raise InputError(f"Graph {first} is in {other} and in {name}: put each graph into one split only.")
        owner[numbers] = place
