"""Coordinates that come with the data, checked against the encoding that a network was built for."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import check_finite, check_index, check_shape, require
from ckgconv.graphs import Coordinates, PackedGraphs, Pairs, ends
from ckgconv.pairs.encoding import Encoding
from ckgconv.pe import UNREACHABLE


def precomputed(data: Data, graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype) -> Coordinates | None:
    """The coordinates that a transform of `ckgconv.pe` wrote, or None."""
    index = getattr(data, "pair_index", None)
    if index is None:
        return None
    values = getattr(data, "pair_encoding", None)
    require(values is not None, "data has pair_index but no pair_encoding: precompute with a transform.")
    _check_source(getattr(data, "pair_source", None), encoding)
    check_shape("pair_index", index, (2, None), "keep it as the transform wrote it.")
    check_index("pair_index", index, graphs.num_nodes, "node numbers")
    receiver, sender = ends(index, encoding.flow)
    keys = receiver * graphs.num_nodes + sender
    require(
        bool((keys.diff() > 0).all()) and bool((graphs.node_graph[receiver] == graphs.node_graph[sender]).all()),
        "pair_index is not sorted by receiver and sender, repeats a pair or joins different graphs: keep the "
        "order in which the transform wrote it.",
    )
    every = int((graphs.sizes**2).sum())
    complete = receiver.shape[0] == every
    require(
        complete or (encoding.support != "global" and encoding.coordinate.sparse is not None),
        f"pair_index holds {receiver.shape[0]} pairs, not all {every}: precompute with a dense transform, or choose "
        f"encoding 'rrwp' with support 'sparse_global' or a number of hops.",
    )
    assert values is not None
    return Coordinates(receiver, sender, _checked_values(values, receiver.shape[0], encoding, dtype), complete)


def precomputed_node_part(data: Data, graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype) -> Tensor:
    """The node part that goes with them."""
    values = getattr(data, "node_encoding", None)
    require(values is not None, "data has pair_index but no node_encoding: add the transform AddRWSE.")
    assert isinstance(values, Tensor)
    check_shape(
        "node_encoding", values, (graphs.num_nodes, encoding.node_channels), "precompute with the model's steps."
    )
    check_finite("node_encoding", values)
    return values.to(dtype)


def check_pairs(pairs: Pairs, graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype) -> None:
    """Refuse a support that was built for other graphs, another encoding or another precision."""
    channels = (None,) if encoding.coordinate.whole_numbers else (None, encoding.channels)
    check_shape("pairs.coordinates", pairs.coordinates, channels, "encode with the layer's pe and steps.")
    origin = pairs.graphs or graphs
    require(
        torch.equal(pairs.node_graph, graphs.node_graph) and torch.equal(origin.edge_index, graphs.edge_index),
        "pairs belongs to other graphs than x: build the support from the same edge_index, batch and flow.",
    )
    require(
        torch.equal(origin.weights(dtype), graphs.weights(dtype)),
        "pairs was built with another edge_weight: build the support from the weights that the layer is given.",
    )
    if encoding.coordinate.whole_numbers:
        _check_distances("pairs.coordinates", pairs.coordinates, encoding.steps)
    else:
        require(
            pairs.coordinates.dtype == dtype,
            f"pairs.coordinates has dtype {pairs.coordinates.dtype}, x has {dtype}: encode with dtype={dtype}.",
        )


def _checked_values(values: Tensor, rows: int, encoding: Encoding, dtype: torch.dtype) -> Tensor:
    """`pair_encoding` [P, C], or [P] distances, if the encoding has such values."""
    remedy = f"precompute with the transform of encoding {encoding.name!r} and the model's steps."
    if encoding.coordinate.whole_numbers:
        check_shape("pair_encoding", values, (rows,), remedy)
        _check_distances("pair_encoding", values, encoding.steps)
        return values
    check_shape("pair_encoding", values, (rows, encoding.channels), remedy)
    if not encoding.coordinate.may_be_infinite:
        check_finite("pair_encoding", values)
    return values.to(dtype)


def _check_distances(name: str, values: Tensor, largest: int) -> None:
    check_index(name, values - UNREACHABLE, largest + 1 - UNREACHABLE, f"distances ({UNREACHABLE}: unreachable) + 1")


def _check_source(source: str | list[str] | None, encoding: Encoding) -> None:
    """`pair_source` is a string, or one per graph of a batch; data without it was not written by a transform."""
    found = {source} if isinstance(source, str) else set(source or [])
    wrong = sorted(found - {encoding.source})
    require(
        not wrong,
        f"The data was precomputed as {''.join(wrong[:1])!r}, the model reads {encoding.source!r}: precompute with the "
        f"model's encoding, steps and flow.",
    )
