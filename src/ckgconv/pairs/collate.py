"""A PyG `Data` or `Batch` → the `GraphBatch` that a network reads."""

from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import InputError, check_device, require, shown
from ckgconv.graphs import GraphBatch, PackedGraphs, Pairs, pack
from ckgconv.pairs.encoded import with_pairs
from ckgconv.pairs.encoding import Encoding
from ckgconv.pairs.precomputed import precomputed, precomputed_node_part
from ckgconv.pairs.support import given_support


def collate(data: Data, encoding: Encoding, dtype: torch.dtype) -> GraphBatch:
    """Pack, encode (unless `data` carries precomputed coordinates) and choose the support (unless given).

    Args:
        data: `x` [N, F], `edge_index` [2, E]; optional `edge_attr` [E, …], `edge_weight` [E], `batch` [N]; what the
            transforms of `ckgconv.pe` write; `support_index` [2, S], a support of the user's own; `graph_features`
            [G, C].
        encoding: coordinates and support.
        dtype: of the coordinates, that of the network's parameters.
    """
    if not hasattr(data, "x"):
        raise InputError(f"data is {shown(data)}: give a graph or a batch of PyG.")
    features = _columns("x", data.x, _num_nodes(data))
    check_device(x=data.x, edge_index=data.edge_index, edge_attr=data.edge_attr)
    weight = getattr(data, "edge_weight", None)
    batch = getattr(data, "batch", None)
    graphs = pack(data.edge_index, batch, weight, data.num_nodes, encoding.flow, number_of_graphs(data))
    pairs, node_encoding = _encoded(data, graphs, encoding, dtype)
    attributes = getattr(data, "edge_attr", None)
    if attributes is not None:
        attributes = _columns("edge_attr", attributes, graphs.num_edges)
    batch = with_pairs(graphs, encoding, dtype, pairs).with_features(features, attributes)
    return replace(batch, node_encoding=node_encoding, graph_features=getattr(data, "graph_features", None))


def _encoded(data: Data, graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype) -> tuple[Pairs, Tensor]:
    """Support with its coordinates, and the node part [N, K]."""
    coordinates = precomputed(data, graphs, encoding, dtype)
    chosen = getattr(data, "support_index", None)
    if coordinates is None:
        coordinates = encoding.coordinates(graphs, dtype, chosen)
        node_encoding = encoding.node_part(graphs, coordinates, dtype)
    else:
        node_encoding = precomputed_node_part(data, graphs, encoding, dtype)
    if chosen is not None:
        return given_support(graphs, coordinates, chosen, dtype, encoding.flow), node_encoding
    return encoding.pairs(graphs, coordinates, dtype), node_encoding


def _num_nodes(data: Data) -> int:
    require(getattr(data, "x", None) is not None, "data has no x: give node features [N, F].")
    require(getattr(data, "edge_index", None) is not None, "data has no edge_index: give edges [2, E].")
    return int(data.num_nodes)


def number_of_graphs(data: Data) -> int | None:
    """G where the data names it, as a PyG `Batch` does: graphs without nodes at the end leave no trace in `batch`."""
    pointers = getattr(data, "ptr", None)
    named = getattr(data, "num_graphs", None if pointers is None else pointers.numel() - 1)
    return None if getattr(data, "batch", None) is None else named


def _columns(name: str, values: Tensor, rows: int) -> Tensor:
    """Features as [rows, columns]: a vector is one column."""
    require(
        values.dim() in (1, 2) and values.shape[0] == rows,
        f"{name} has shape {list(values.shape)}, expected [{rows}, columns]: give one row each.",
    )
    return values.unsqueeze(-1) if values.dim() == 1 else values
