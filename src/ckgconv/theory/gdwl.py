"""Generalised-distance Weisfeiler-Lehman, and the CKGCN that performs it (Proposition 3.1).

    oracle     χ(v) ← hash {{ (d(v, u), χ(u)) : u ∈ V }}
    CKGConv    ψ^h(d) = 1(d = d_h) on one-hot colours: y_v[h, c] = |{u : d(v, u) = d_h, χ(u) = c}| / n

The convolution's output is the multiset of the oracle, counted; the feed-forward network's injective map is a table.

Legend: N nodes of all graphs, P = Σ n² pairs, H distinct distances, F colours.
"""

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pairs import global_support
from ckgconv.theory.fixed import bare_convolution

# Distances closer than this count as equal.
TOLERANCE = 1e-9
Colours = NDArray[np.int64]


def refine_colours(graphs: PackedGraphs, distance: Coordinates, rounds: int | None = None) -> Colours:
    """GD-WL colours [N] after `rounds` rounds, or when stable; comparable between the graphs packed together."""
    label, receiver, sender = distance_labels(distance), distance.receiver.numpy(), distance.sender.numpy()
    start = np.searchsorted(receiver, np.arange(graphs.num_nodes + 1))
    colours = np.zeros(graphs.num_nodes, dtype=np.int64)
    for _ in range(graphs.num_nodes if rounds is None else rounds):
        seen = label * graphs.num_nodes + colours[sender]
        ordered = seen[np.lexsort((seen, receiver))]
        table: dict[bytes, int] = {}
        rows = (ordered[a:b].tobytes() for a, b in pairwise(start))
        refined = np.array([table.setdefault(row, len(table)) for row in rows], dtype=np.int64)
        if rounds is None and len(table) == colours.max() + 1:
            break
        colours = refined
    return colours


def indicator_colours(graphs: PackedGraphs, distance: Coordinates, rounds: int) -> Colours:
    """The same colours, computed by CKGConv layers with indicator kernels."""
    label = torch.from_numpy(distance_labels(distance))
    kinds = int(label.max()) + 1
    labelled = Coordinates(distance.receiver, distance.sender, label.double().unsqueeze(-1), complete=True)
    pairs = global_support(graphs, labelled)
    colours = torch.zeros(graphs.num_nodes, dtype=torch.int64)
    for _ in range(rounds):
        one_hot = nn.functional.one_hot(colours).double()
        kernel = IndicatorKernel(kinds, copies=one_hot.shape[1])
        # The coordinates are labels of distances in one channel, so the encoding is "rd", which is not rescaled.
        conv = bare_convolution(kinds * one_hot.shape[1], kernel, pe="rd").double()
        counts = conv(one_hot.repeat(1, kinds), graphs.edge_index, batch=graphs.node_graph, pairs=pairs)
        colours = injective_table(counts)
    return colours.numpy()


class IndicatorKernel(nn.Module):
    """ψ^h(d) = 1(d = d_h) · 1 for each distance d_h: labels [P, 1] → [P, H · copies]."""

    def __init__(self, kinds: int, copies: int) -> None:
        super().__init__()
        self.kinds = kinds
        self.copies = copies

    def forward(self, label: Tensor) -> Tensor:
        hits = nn.functional.one_hot(label.squeeze(-1).long(), self.kinds).to(label.dtype)
        return hits.repeat_interleave(self.copies, dim=-1)


def distance_labels(distance: Coordinates) -> Colours:
    """[P] a number for each distinct distance; vectors (RRWP) count as one distance; infinity is a distance."""
    values = distance.values.reshape(distance.values.shape[0], -1).double().numpy()
    finite = np.where(np.isinf(values), -1.0, values)
    labels = [_group_close(column) for column in finite.T]
    return np.unique(np.stack(labels, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def injective_table(features: Tensor) -> Tensor:
    """[N, C] → [N]: equal rows get equal numbers, different rows different ones."""
    labels = distance_labels(Coordinates(features, features, features.detach(), complete=True))
    return torch.from_numpy(labels)


def _group_close(values: NDArray[np.float64]) -> Colours:
    """Numbers of the clusters of sorted values: a gap above the tolerance starts a new one."""
    order = np.argsort(values, kind="stable")
    fresh = np.diff(values[order], prepend=values[order[:1]]) > TOLERANCE
    labels = np.empty(len(values), dtype=np.int64)
    labels[order] = np.cumsum(fresh)
    return labels
