"""Shortest-path and resistance distance as pseudo-coordinates, on all pairs; `search` and `resistance` on given ones.

    SPD_ij = length in hops of the shortest walk from i to j
    RD_ij  = Γ_ii + Γ_jj - 2 Γ_ij,   Γ = (L + 11ᵀ/n)⁻¹ on each connected component

Legend: G graphs, n nodes of the largest graph, P pairs.
"""

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.layout import LARGEST_PADDED, PairReader, adjacency, cells, sparse_adjacency
from ckgconv.pe.resistance import check_conductances, rd_at
from ckgconv.pe.search import UNREACHABLE, spd_at
from ckgconv.pe.sparse import from_keys, identity, sparse_matrix
from ckgconv.pe.walk import working_dtype


def spd(graphs: PackedGraphs, max_distance: int) -> Coordinates:
    """Hop distances [P] int64, clipped at `max_distance`; unreachable pairs hold -1, never a real distance.

    Directed graphs: along walks from receiver to sender, not symmetric.
    Weights do not count, except that an edge of weight zero is no edge. Self loops and duplicate edges change
    nothing; a single node has distance 0 to itself.
    """
    require(max_distance >= 1, f"max_distance is {max_distance}: give at least 1 hop.")
    pairs = PairReader(graphs)
    edges = (adjacency(graphs, torch.float32) > 0).to(torch.float32)
    distance = torch.zeros_like(edges, dtype=torch.int64)
    reached = torch.eye(edges.shape[-1], dtype=edges.dtype, device=edges.device).expand_as(edges)
    for hops in range(1, max_distance + 1):
        wider = ((reached @ edges + reached) > 0).to(torch.float32)
        new = wider > reached
        distance = torch.where(new, hops, distance)
        reached = wider
        if not bool(new.any()):
            break
    connected = _closure(edges) > 0
    distance = distance.masked_fill((reached == 0) & connected, max_distance)
    return pairs.coordinates(pairs.read(distance.masked_fill(~connected, UNREACHABLE)))


def rd(graphs: PackedGraphs, dtype: torch.dtype | None = None) -> Coordinates:
    """Effective resistances [P, 1]: edges are resistors of conductance A_ij; across components infinite.

    Computed in float64 whatever the dtype of the result: inverting L + 11ᵀ/n per component is well posed, where a
    pseudo-inverse with a cut-off is not. Differentiable in the weights. Directions are ignored ((A + Aᵀ)/2); self
    loops carry no current; parallel edges add their conductances; an edge of weight zero is no edge.
    """
    pairs = PairReader(graphs)
    matrix = adjacency(graphs, torch.float64)
    matrix = (matrix + matrix.mT) / 2
    check_conductances(matrix.detach()[matrix.detach() > 0])
    together = _closure(matrix.detach())
    # A padded node is a component of its own, so that L + 11ᵀ/n is invertible on the padding too.
    laplacian = torch.diag_embed(matrix.sum(-1)) - matrix
    size = together.sum(-1, keepdim=True)
    # 11ᵀ/n on the scale of the weights: it does not change resistances, only how well they can be computed.
    scale = (laplacian.detach().diagonal(dim1=-2, dim2=-1).unsqueeze(-2) * together).sum(-1, keepdim=True) / size
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    # By Cholesky factors, which such a matrix has. Batches of LU factors go wrong in torch, without an error, once
    # somebody has called torch.set_num_threads with more than one (pytorch/pytorch#141358).
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(laplacian + scale * together / size))
    potential = inverse.diagonal(dim1=-2, dim2=-1)
    resistance = potential.unsqueeze(-1) + potential.unsqueeze(-2) - (inverse + inverse.mT)
    resistance = resistance.masked_fill(torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device), 0.0)
    resistance = resistance.masked_fill(together == 0, torch.inf)
    return pairs.coordinates(pairs.read(resistance).unsqueeze(-1).to(dtype or working_dtype(graphs)))


def pairs_within(graphs: PackedGraphs, hops: int) -> tuple[Tensor, Tensor]:
    """Receivers and senders of the pairs with SPD ≤ hops, sorted; never forms the n² pairs of large graphs."""
    hops = min(hops, graphs.largest)  # no shortest path is longer than this
    if hops == 1:
        return _neighbours(graphs)
    if graphs.largest <= LARGEST_PADDED:
        return _padded_within(graphs, hops)
    edges = sparse_adjacency(graphs, torch.float32)
    stay = identity(graphs.num_nodes, torch.float32, edges.values.device)
    # Walks of at most one step, so that the k-th power holds all walks of at most k steps.
    row, column = torch.cat([edges.row, stay.row]), torch.cat([edges.column, stay.column])
    step = sparse_matrix(row, column, torch.ones_like(row, dtype=torch.float32), graphs.num_nodes).pattern()
    reached = stay
    for _ in range(hops):
        # Ones replace counts of walks, which could overflow.
        reached = (reached @ step).pattern()
    return reached.row, reached.column


def _neighbours(graphs: PackedGraphs) -> tuple[Tensor, Tensor]:
    """The pairs with SPD ≤ 1: edges of any weight but zero, and every node with itself."""
    key = graphs.receiver * graphs.num_nodes + graphs.sender
    if graphs.edge_weight is not None:
        key = key[graphs.edge_weight > 0]
    stay = torch.arange(graphs.num_nodes, device=key.device) * (graphs.num_nodes + 1)
    return from_keys(torch.unique(torch.cat([key, stay])), graphs.num_nodes)


def _padded_within(graphs: PackedGraphs, hops: int) -> tuple[Tensor, Tensor]:
    """The same by padded matrices, which on small graphs are faster than sorting walks."""
    node, widest = torch.arange(graphs.num_nodes, device=graphs.node_graph.device), graphs.largest
    step = (adjacency(graphs, torch.float32) > 0).to(torch.float32).view(-1)
    stay = cells(graphs, node, node)
    shape = graphs.num_graphs, widest, widest
    reached = torch.zeros_like(step).index_fill(0, stay, 1.0).view(shape)
    step = step.index_fill(0, stay, 1.0).view(shape)
    for taken in range(hops):
        reached = ((reached @ step) > 0).to(torch.float32) if taken else step
    cell = reached.reshape(-1).nonzero().squeeze(1)
    row, column = cell // widest, cell % widest
    first = graphs.node_ptr.index_select(0, row // widest)
    return first + row % widest, first + column


def _closure(matrix: Tensor) -> Tensor:
    """[G, n, n] 1 where a walk leads from i to j, itself included, in as many squarings as the diameter has bits."""
    reached = (matrix > 0).to(matrix.dtype) + torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    while True:
        wider = ((reached @ reached) > 0).to(matrix.dtype)
        if bool((wider == (reached > 0)).all()):
            return wider
        reached = wider


# Both computations hold up to eight float64 matrices at a time.
SPD = PseudoCoordinate(
    values=lambda graphs, steps, dtype: spd(graphs, steps),
    channels=lambda steps: 1,
    reading="table",
    at_pairs=lambda graphs, steps, receiver, sender, dtype: spd_at(graphs, steps, receiver, sender),
    bytes_per_cell=8 * 8,
)
RD = PseudoCoordinate(
    values=lambda graphs, steps, dtype: rd(graphs, dtype),
    channels=lambda steps: 1,
    reading="gaussian",
    at_pairs=lambda graphs, steps, receiver, sender, dtype: rd_at(graphs, receiver, sender, dtype),
    least_steps=0,
    bytes_per_cell=8 * 8,
    source="{name}",
)
