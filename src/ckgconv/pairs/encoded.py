"""Graphs → all that a layer needs to know about them, computed once for any number of layers and calls.

Legend: N nodes, E edges, P pairs.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ckgconv.checks import require
from ckgconv.graphs import Flow, GraphBatch, PackedGraphs, Pairs, index_of, pack
from ckgconv.pairs.encoding import Encoding
from ckgconv.pairs.support import given_support, row_of


class GraphInput(NamedTuple):
    """A description of graphs, as PyG's layers take it."""

    edge_index: Tensor  # [2, E] sources above targets
    num_nodes: int  # N
    batch: Tensor | None = None  # [N]; None: one graph
    edge_weight: Tensor | None = None  # [E]

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    def pack(self, flow: Flow) -> PackedGraphs:
        return pack(self.edge_index, self.batch, self.edge_weight, self.num_nodes, flow)


@dataclass(frozen=True)
class EncodedGraphs:
    """Support and coordinates of graphs, with the graphs themselves, so that others are refused."""

    encoding: str  # `Encoding.description`
    graphs: PackedGraphs
    pairs: Pairs
    degree: Tensor  # [N]
    edge_row: Tensor  # [E'] row in `pairs` of each edge inside the support
    edge_inside: Tensor | None  # [E'] these edges; None: all

    def to(self, device: torch.device | str) -> "EncodedGraphs":
        moved: EncodedGraphs = pytree.tree_map_only(Tensor, lambda value: value.to(device), self)
        return moved

    def with_features(self, x: Tensor, edge_attr: Tensor | None) -> GraphBatch:
        """The input of a layer: features [N, F] of nodes and [E, Fe] of edges on these graphs."""
        inside = self.edge_inside
        return GraphBatch(
            node_features=x,
            node_encoding=x.new_zeros(x.shape[0], 0),
            degree=self.degree,
            node_ptr=self.graphs.node_ptr,
            pairs=self.pairs,
            edge_row=self.edge_row,
            edge_features=edge_attr if edge_attr is None or inside is None else edge_attr[inside],
            position=None,
        )


torch.export.register_dataclass(EncodedGraphs, serialized_type_name="ckgconv.EncodedGraphs")
torch.serialization.add_safe_globals([EncodedGraphs])


def encoded_graphs(
    graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype, support_index: Tensor | None = None
) -> EncodedGraphs:
    """Coordinates and support of an encoding; `support_index` [2, S] replaces its support."""
    coordinates = encoding.coordinates(graphs, dtype, support_index)
    if support_index is None:
        pairs = encoding.pairs(graphs, coordinates, dtype)
    else:
        pairs = given_support(graphs, coordinates, support_index, dtype, encoding.flow)
    return with_pairs(graphs, encoding, dtype, pairs)


def with_pairs(graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype, pairs: Pairs) -> EncodedGraphs:
    """The same for a support with its coordinates."""
    row, inside = row_of(graphs.receiver, graphs.sender, pairs, graphs.num_nodes)
    everywhere = bool(inside.all())
    return EncodedGraphs(
        encoding.description,
        graphs,
        replace(pairs, graphs=None),
        graphs.degree(dtype),
        row if everywhere else row[inside],
        None if everywhere else inside.nonzero().squeeze(-1),
    )


def own_copy(graphs: PackedGraphs) -> PackedGraphs:
    """The same graphs in tensors of their own: a caller who changes the originals in place is then found out."""
    copy: PackedGraphs = pytree.tree_map_only(Tensor, Tensor.clone, graphs)
    return copy


def check_encoded(encoded: EncodedGraphs, given: GraphInput, encoding: Encoding, dtype: torch.dtype) -> None:
    """Refuse what was encoded otherwise, or from other graphs; a batch or weights not given are not compared."""
    check_encoding(encoded, encoding.description)
    require(
        encoded.degree.dtype == dtype,
        f"pairs were encoded in {encoded.degree.dtype}, but the layer's parameters have {dtype}: encode after the "
        f"layer has been converted.",
    )
    require(
        encoded.degree.device == given.edge_index.device,
        f"pairs are on {encoded.degree.device}, edge_index is on {given.edge_index.device}: move them with "
        f"pairs.to({str(given.edge_index.device)!r}).",
    )
    different = difference(encoded.graphs, given, encoding.flow)
    require(different is None, f"pairs were encoded with another {different}: encode these graphs by conv.encode.")


def check_encoding(encoded: EncodedGraphs, wanted: str) -> None:
    """Refuse coordinates or a support that are not those of the layer, whose encoding is described as `wanted`."""
    require(
        encoded.encoding == wanted,
        f"pairs were encoded as {encoded.encoding}, but the layer reads {wanted}: encode by this layer, or by one with "
        f"the same pe, steps, support and flow.",
    )


def difference(graphs: PackedGraphs, given: GraphInput, flow: Flow) -> str | None:
    """The first argument that differs from these graphs; None where all agree."""
    if graphs.num_nodes != given.num_nodes:
        return f"number of nodes ({graphs.num_nodes}, now {given.num_nodes})"
    if graphs.num_edges != given.edge_index.shape[1]:
        return f"number of edges ({graphs.num_edges}, now {given.edge_index.shape[1]})"
    if not torch.equal(index_of(graphs.receiver, graphs.sender, flow), given.edge_index.long()):
        return "edge_index"
    if given.batch is not None and not torch.equal(graphs.node_graph, given.batch.long()):
        return "batch"
    if given.edge_weight is None:
        return None
    same = graphs.edge_weight is not None and torch.equal(graphs.edge_weight, given.edge_weight)
    return None if same else "edge_weight"
