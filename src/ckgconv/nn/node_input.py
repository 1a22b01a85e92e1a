"""The node part of the encoding as a network reads it, with the size of things where the recipe asks for it.

    [M_ii, M²_ii, … ‖ log(1 + d_i) ‖ log n]        d_i degree of the node, n nodes of its graph

Legend: N nodes, K channels of the node part.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.graphs import GraphBatch

SIZES = 2  # channels


def node_input(batch: GraphBatch, sizes: bool) -> Tensor:
    """[N, K], or [N, K + 2] with degree and order."""
    return torch.cat([batch.node_encoding, size_features(batch)], dim=-1) if sizes else batch.node_encoding


def size_features(batch: GraphBatch) -> Tensor:
    """log(1 + d_i) and log n [N, 2]."""
    return torch.stack([batch.degree.log1p(), orders(batch).to(batch.degree.dtype).log()], dim=-1)


def orders(batch: GraphBatch) -> Tensor:
    """n of the graph of each node, [N] int64; padding, which has no graph, counts as a graph of one node."""
    return F.pad(batch.node_ptr.diff(), (0, 1), value=1).index_select(0, batch.pairs.node_graph)


def with_drawn_signs(batch: GraphBatch, vectors: int) -> Tensor:
    """The node part [N, K] with a sign drawn in each graph for each of the first channels, which are eigenvectors."""
    encoding = batch.node_encoding
    # Padding nodes count as one graph more.
    drawn = torch.rand(batch.num_graphs + 1, vectors, device=encoding.device)
    signs = torch.where(drawn < 0.5, -1.0, 1.0).to(encoding.dtype)
    signs = F.pad(signs, (0, encoding.shape[1] - vectors), value=1.0)
    return encoding * signs.index_select(0, batch.pairs.node_graph)


def node_channels(channels: int, sizes: bool) -> int:
    """Channels of the node part with those that are added."""
    return channels + SIZES if sizes else channels
