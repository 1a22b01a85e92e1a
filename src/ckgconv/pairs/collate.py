"""A PyG `Data` or `Batch` → the `GraphBatch` that a network reads."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import check_index, check_shape, require
from ckgconv.graphs import Coordinates, GraphBatch, PackedGraphs, Pairs, pack
from ckgconv.pairs.encode import Encoding
from ckgconv.pairs.support import row_of


def collate(data: Data, encoding: Encoding, dtype: torch.dtype, pairs: Pairs | None = None) -> GraphBatch:
    """Pack, encode (unless `data` carries precomputed coordinates) and choose the support (unless given).

    Args:
        data: `x` [N, F], `edge_index` [2, E]; optional `edge_attr` [E, …], `edge_weight` [E], `batch` [N],
            `pos` [N, 2], and what the transforms of `ckgconv.pe` write.
        encoding: coordinates and support.
        dtype: of the coordinates, that of the network's parameters.
        pairs: a support with its coordinates, in place of the encoding's own.
    """
    features = _columns("x", data.x, _num_nodes(data))
    graphs = pack(data.edge_index, getattr(data, "batch", None), getattr(data, "edge_weight", None), data.num_nodes)
    if pairs is not None:
        _check_pairs(pairs, graphs, encoding)
        node_encoding = features.new_zeros(graphs.num_nodes, 0)
    else:
        coordinates = precomputed(data, graphs, encoding, dtype)
        if coordinates is None:
            coordinates = encoding.coordinates(graphs, dtype)
            node_encoding = encoding.node_part(graphs, coordinates, dtype)
        else:
            node_encoding = _precomputed_node_part(data, graphs, encoding, dtype)
        pairs = encoding.pairs(graphs, coordinates)
    row, inside = row_of(graphs.edge_index[0], graphs.edge_index[1], pairs, graphs.num_nodes)
    attributes = getattr(data, "edge_attr", None)
    if attributes is not None:
        attributes = _columns("edge_attr", attributes, graphs.edge_index.shape[1])[inside]
    return GraphBatch(
        node_features=features,
        node_encoding=node_encoding,
        degree=graphs.degree(dtype),
        node_ptr=graphs.node_ptr,
        pairs=pairs,
        edge_row=row[inside],
        edge_features=attributes,
        position=getattr(data, "pos", None),
    )


def precomputed(data: Data, graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype) -> Coordinates | None:
    """The coordinates that a transform wrote, or None."""
    if getattr(data, "pair_index", None) is None:
        return None
    receiver, sender = data.pair_index
    check_index("pair_index", data.pair_index, graphs.num_nodes, "node numbers")
    keys = receiver * graphs.num_nodes + sender
    require(
        bool((keys.diff() > 0).all()) and bool((graphs.node_graph[receiver] == graphs.node_graph[sender]).all()),
        "pair_index is not sorted by receiver and sender, repeats a pair or joins different graphs: keep the "
        "order in which the transform wrote it.",
    )
    values = data.pair_encoding
    complete = receiver.shape[0] == int((graphs.sizes**2).sum())
    require(
        complete or encoding.support != "global",
        f"pair_index holds {receiver.shape[0]} pairs, not all {int((graphs.sizes**2).sum())} of the global "
        f"support: precompute with a dense transform or choose support 'sparse_global'.",
    )
    if encoding.name == "spd":
        check_shape("pair_encoding", values, (receiver.shape[0],), "precompute with AddSPD.")
        check_index("pair_encoding", values, encoding.steps + 2, "distances")
    else:
        remedy = f"precompute with the transform of encoding {encoding.name!r} and the model's steps."
        check_shape("pair_encoding", values, (receiver.shape[0], encoding.channels), remedy)
        values = values.to(dtype)
    return Coordinates(receiver, sender, values, complete)


def _check_pairs(pairs: Pairs, graphs: PackedGraphs, encoding: Encoding) -> None:
    channels = (None,) if encoding.name == "spd" else (None, encoding.channels)
    check_shape("pairs.coordinates", pairs.coordinates, channels, "encode with the layer's pe and steps.")
    check_shape("pairs.rowptr", pairs.rowptr, (graphs.num_nodes + 1,), "build the support from the same graphs.")


def _precomputed_node_part(data: Data, graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype) -> Tensor:
    values = getattr(data, "node_encoding", None)
    require(values is not None, "data has pair_index but no node_encoding: add the transform AddRWSE.")
    assert isinstance(values, Tensor)
    remedy = "precompute with the model's steps."
    check_shape("node_encoding", values, (graphs.num_nodes, encoding.node_channels), remedy)
    return values.to(dtype)


def _num_nodes(data: Data) -> int:
    require(getattr(data, "x", None) is not None, "data has no x: give node features [N, F].")
    require(getattr(data, "edge_index", None) is not None, "data has no edge_index: give edges [2, E].")
    require(int(data.num_nodes) > 0, "The batch is empty (0 nodes): drop empty batches before the model.")
    return int(data.num_nodes)


def _columns(name: str, values: Tensor, rows: int) -> Tensor:
    """Features as [rows, columns]: a vector is one column."""
    require(
        values.dim() in (1, 2) and values.shape[0] == rows,
        f"{name} has shape {list(values.shape)}, expected [{rows}, columns]: give one row each.",
    )
    return values.unsqueeze(-1) if values.dim() == 1 else values
