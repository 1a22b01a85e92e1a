"""Walks both ways over directed edges: against them, as RRWP walks, and along them.

    P_ij = [I, M, …, M^K, M̄, …, M̄^K]_ij,   M = D⁻¹A,   M̄ = D̄⁻¹Aᵀ

RRWP of one flow never sees the edges that leave a receiver, and with directions ignored both kinds of neighbours look
alike; here the kernel can tell them apart. D̄ holds the column sums of A. On an undirected graph both halves are equal.

Legend: P pairs, C = 2K + 1 channels.
"""

from dataclasses import replace

import torch

from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.rrwp import rrwp, sparse_rrwp
from ckgconv.pe.sparse import from_keys


def two_way_rrwp(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """P for every pair of every graph, Σ n² rows."""
    against, along = rrwp(graphs, steps, dtype=dtype), rrwp(reversed_edges(graphs), steps, dtype=dtype)
    return replace(against, values=torch.cat([against.values, along.values[:, 1:]], dim=1))


def sparse_two_way_rrwp(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """The same values, but only the pairs that a walk of one of the two ways reaches, the diagonal included."""
    ways = [sparse_rrwp(each, steps, dtype=dtype) for each in (graphs, reversed_edges(graphs))]
    keys = torch.cat([way.receiver * graphs.num_nodes + way.sender for way in ways])
    stored, place = torch.unique(keys, return_inverse=True)
    places = place.split([way.receiver.shape[0] for way in ways])
    against, along = (
        way.values.new_zeros(stored.shape[0], steps + 1).index_copy(0, rows, way.values)
        for way, rows in zip(ways, places, strict=True)
    )
    values = torch.cat([against, along[:, 1:]], dim=1)
    return Coordinates(*from_keys(stored, graphs.num_nodes), values, complete=False)


def reversed_edges(graphs: PackedGraphs) -> PackedGraphs:
    """The same graphs with senders and receivers exchanged."""
    return replace(graphs, receiver=graphs.sender, sender=graphs.receiver)


TWO_WAY_RRWP = PseudoCoordinate(
    values=two_way_rrwp,
    channels=lambda steps: 2 * steps + 1,
    reading="normalised",
    sparse=sparse_two_way_rrwp,
    rescaled=True,
    diagonal_skips=1,  # I is one on every diagonal
)
