"""Coordinates → support: which pairs (i, j) the kernel is evaluated on, as one CSR structure.

    supp(i) = all nodes (global) | SPD ≤ k (k-hop) | any given set

The size of the support does not depend on the order of the encoding. The sparse form of the global support stores
only pairs that differ from zero and lets one zero row per graph stand for the other n² - |stored| pairs:

    y_i = 1/n [ Σ_{j ∈ S_i} x_j ⊙ (ψ(P_ij) - ψ(0)) + ψ(0) ⊙ Σ_j x_j ]

(The factor |V| in the paper's Eq. 17 is a slip; the dense sum shows it.) With the zero row weighted by the number of
pairs it stands for, batch statistics are exactly those of the dense form.

Legend: G graphs, N nodes, P stored pairs, R rows.
"""

import torch
from torch import Tensor

from ckgconv.checks import check_index, check_shape, require
from ckgconv.graphs import SOURCE_TO_TARGET, Coordinates, Flow, PackedGraphs, Pairs, ends, pointer
from ckgconv.pe import pairs_within
from ckgconv.pe.sparse import find, from_keys


def global_support(graphs: PackedGraphs, coordinates: Coordinates, dtype: torch.dtype | None = None) -> Pairs:
    """The whole graph: dense where the coordinates are complete, with zero rows where they are sparse."""
    if coordinates.complete:
        return _pairs(graphs, coordinates, dtype)
    require(
        coordinates.zero_elsewhere,
        "Coordinates were given for some pairs only, and the others are not zero: give those of every pair.",
    )
    coordinates = _with_edges(graphs, coordinates)
    channels = coordinates.values.shape[1]
    zero_rows = coordinates.values.new_zeros(graphs.num_graphs, channels)
    stored = torch.bincount(graphs.node_graph[coordinates.receiver], minlength=graphs.num_graphs)
    not_stored = (graphs.sizes**2 - stored).to(zero_rows.dtype)
    return Pairs(
        rowptr=_rowptr(graphs, coordinates.receiver),
        receiver=coordinates.receiver,
        sender=coordinates.sender,
        coordinates=torch.cat([coordinates.values, zero_rows]),
        support_size=graphs.sizes[graphs.node_graph].to(zero_rows.dtype),
        node_graph=graphs.node_graph,
        row_weight=torch.cat([zero_rows.new_ones(coordinates.receiver.shape[0]), not_stored]),
        graph_ptr=graphs.node_ptr,
        graphs=graphs,
    )


def hop_support(graphs: PackedGraphs, coordinates: Coordinates, hops: int, dtype: torch.dtype | None = None) -> Pairs:
    """Pairs with SPD ≤ hops, including each node with itself."""
    require(hops >= 0, f"support is {hops} hops: give 0 or more.")
    if coordinates.within == hops:
        return _pairs(graphs, coordinates, dtype)
    return _pairs(graphs, _restrict(graphs, coordinates, *pairs_within(graphs, hops)), dtype)


def given_support(
    graphs: PackedGraphs,
    coordinates: Coordinates,
    pair_index: Tensor,
    dtype: torch.dtype | None = None,
    flow: Flow = SOURCE_TO_TARGET,
) -> Pairs:
    """Exactly the pairs of `pair_index` [2, S], sources above targets, in any order; a node may have none."""
    receiver, sender = chosen_pairs(graphs, pair_index, flow)
    return _pairs(graphs, _restrict(graphs, coordinates, receiver, sender), dtype)


def chosen_pairs(graphs: PackedGraphs, pair_index: Tensor, flow: Flow = SOURCE_TO_TARGET) -> tuple[Tensor, Tensor]:
    """Receivers and senders of a support of the user's own, checked and sorted."""
    check_shape("pair_index", pair_index, (2, None), "give pairs as two rows, sources above targets.")
    check_index("pair_index", pair_index, graphs.num_nodes, "node numbers")
    receiver, sender = ends(pair_index, flow)
    require(
        bool((graphs.node_graph[receiver] == graphs.node_graph[sender]).all()),
        "pair_index joins nodes of different graphs: a support lies within one graph, remove such pairs.",
    )
    keys = torch.unique(receiver * graphs.num_nodes + sender)
    require(
        keys.shape[0] == receiver.shape[0],
        "pair_index repeats a pair: a support is a set, remove duplicates.",
    )
    return from_keys(keys, graphs.num_nodes)


def row_of(receiver: Tensor, sender: Tensor, pairs: Pairs | Coordinates, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Row of each pair (receiver, sender) among the stored ones, and whether it is stored at all."""
    stored = pairs.receiver * num_nodes + pairs.sender
    return find(receiver * num_nodes + sender, stored)


def _pairs(graphs: PackedGraphs, coordinates: Coordinates, dtype: torch.dtype | None) -> Pairs:
    """The support that consists of the stored pairs; sizes in `dtype`, by default that of the coordinates."""
    rowptr = _rowptr(graphs, coordinates.receiver)
    values = coordinates.values
    if dtype is None:
        dtype = values.dtype if values.is_floating_point() else torch.get_default_dtype()
    return Pairs(
        rowptr=rowptr,
        receiver=coordinates.receiver,
        sender=coordinates.sender,
        coordinates=values,
        support_size=rowptr.diff().to(dtype),
        node_graph=graphs.node_graph,
        row_weight=None,
        graphs=graphs,
    )


def _rowptr(graphs: PackedGraphs, receiver: Tensor) -> Tensor:
    return pointer(torch.bincount(receiver, minlength=graphs.num_nodes))


def _restrict(graphs: PackedGraphs, coordinates: Coordinates, receiver: Tensor, sender: Tensor) -> Coordinates:
    """The coordinates of the given pairs; a pair that a sparse encoding does not store is zero."""
    row, found = row_of(receiver, sender, coordinates, graphs.num_nodes)
    values = coordinates.values.index_select(0, row)
    if coordinates.complete:
        return Coordinates(receiver, sender, values, complete=False)
    # No distance is "zero elsewhere": whole numbers are distances.
    if coordinates.zero_elsewhere and values.dim() == 2:
        values = values * found.unsqueeze(-1)
    else:
        require(
            bool(found.all()),
            "Coordinates were given for some pairs only, and the others are not zero: give those of every pair of "
            "the support.",
        )
    return Coordinates(receiver, sender, values, complete=False)


def _with_edges(graphs: PackedGraphs, coordinates: Coordinates) -> Coordinates:
    """Add edges that no walk follows (weight zero, or an encoding without steps), since they may carry attributes."""
    receiver, sender = graphs.receiver, graphs.sender
    _, found = row_of(receiver, sender, coordinates, graphs.num_nodes)
    if bool(found.all()):
        return coordinates
    keys = torch.cat([coordinates.receiver, receiver]) * graphs.num_nodes
    keys = torch.unique(keys + torch.cat([coordinates.sender, sender]))
    return _restrict(graphs, coordinates, *from_keys(keys, graphs.num_nodes))
