"""Graphs in the text format of the TU data sets, as the usual loaders read them.

    A                  an edge per line, "i, j", nodes numbered from 1 over all graphs
    graph_indicator    the graph of each node, from 1, ascending
    graph_labels       a class per graph
    node_labels        a type per node, read as a one-hot row
    edge_labels        a type per line of A, read as a one-hot row

Self loops and repeated edges are dropped; edges are sorted by source, then target.

Legend: N nodes, E edges.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckgconv.checks import InputError, require

Array = NDArray[Any]


def read_tu(texts: dict[str, str]) -> list[dict[str, Array]]:
    """x [n, F] and edge_attr [e, Fe] one-hot, edge_index [2, e] from 0 and y [1] of each graph."""
    edges = _numbers(texts["A"], "A", 2)
    owner = _numbers(texts["graph_indicator"], "graph_indicator", 1)[:, 0] - 1
    labels = _numbers(texts["graph_labels"], "graph_labels", 1)[:, 0]
    atoms = _numbers(texts["node_labels"], "node_labels", 1)[:, 0]
    bonds = _numbers(texts["edge_labels"], "edge_labels", 1)[:, 0]
    _check(edges, owner, labels, atoms, bonds)
    edges = edges.T - 1
    kept = np.flatnonzero(edges[0] != edges[1])
    _, first = np.unique(edges[0, kept] * len(owner) + edges[1, kept], return_index=True)
    kept = kept[first]
    edges, bonds = edges[:, kept], _one_hot(bonds)[kept]
    starts = np.searchsorted(owner, np.arange(len(labels) + 1))
    edge_starts = np.searchsorted(owner[edges[0]], np.arange(len(labels) + 1))
    x, classes = _one_hot(atoms), np.unique(labels, return_inverse=True)[1]
    return [
        {
            "x": x[starts[graph] : starts[graph + 1]],
            "edge_index": edges[:, edge_starts[graph] : edge_starts[graph + 1]] - starts[graph],
            "edge_attr": bonds[edge_starts[graph] : edge_starts[graph + 1]],
            "y": classes[graph : graph + 1],
        }
        for graph in range(len(labels))
    ]


def _numbers(text: str, name: str, columns: int) -> Array:
    """[lines, columns] whole numbers."""
    try:
        rows = [[int(cell) for cell in line.split(",")] for line in text.splitlines() if line.strip()]
        numbers = np.array(rows, dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name}.txt has a line that is not {columns} whole numbers.") from error
    require(numbers.ndim == 2 and numbers.shape[1] == columns, f"{name}.txt does not have {columns} numbers a line.")
    return numbers


def _check(edges: Array, owner: Array, labels: Array, atoms: Array, bonds: Array) -> None:
    nodes = len(owner)
    ascending = bool((np.diff(owner) >= 0).all()) and owner[0] >= 0 and owner[-1] < len(labels)
    require(ascending, "graph_indicator.txt does not number the graphs in ascending order.")
    require(len(atoms) == nodes, f"node_labels.txt has {len(atoms)} lines for {nodes} nodes.")
    require(len(bonds) == len(edges), f"edge_labels.txt has {len(bonds)} lines for {len(edges)} edges.")
    inside = bool(((edges >= 1) & (edges <= nodes)).all()) and bool(
        (owner[edges[:, 0] - 1] == owner[edges[:, 1] - 1]).all()
    )
    require(inside, "A.txt joins nodes that do not exist, or nodes of different graphs.")


def _one_hot(types: Array) -> Array:
    """[·, number of types] float32."""
    types = types - types.min()
    require(int(types.max()) < 1000, f"A label is {int(types.max())} above the smallest one: not a type.")
    return np.eye(int(types.max()) + 1, dtype=np.float32)[types]
