"""Random walks and sizes of rings: RRWP, and the smallest and the largest simple cycle through both nodes of a pair.

    P_ij = [I, M, …, M^K ‖ s_ij/n, l_ij/n]_ij           s_ij least, l_ij most nodes of a cycle that contains i and j
    node part  [1, M_ii, …, M^K_ii ‖ s_ii, l_ii]         0 where there is none of at most 18 nodes

A walk sees a ring of r nodes by probabilities near 2⁻ʳ, and a count for each r (`cycles`) is a channel that is zero in
most batches, whose batch norm in evaluation is not the one it was trained with. A size is one channel for all rings.

Legend: N nodes, P pairs, K steps, n nodes of the graph.
"""

import numpy as np
import torch
from torch import Tensor

from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.cycles import append_to_returns, append_to_walks, cells_of_cycles, number_of_pairs

LONGEST = 18  # the largest ring of ZINC-12k's training split


def walks_and_rings(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """P for every pair, [P, K + 3]; walks are differentiable in the edge weights.

    Args:
        graphs: packed graphs on any device; cycles are found on the CPU.
        steps: K.
        dtype: of the result; by default that of the edge weights, or torch's default.
    """
    return append_to_walks(graphs, ring_sizes(graphs), steps, dtype)


def node_walks_and_rings(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """The node part, [N, K + 3]."""
    return append_to_returns(graphs, ring_sizes(graphs), steps, dtype)


def ring_sizes(graphs: PackedGraphs) -> Tensor:
    """[P, 2] float64, s and l of every pair, in the order of `all_pairs`."""
    sizes = np.zeros((number_of_pairs(graphs), 2))
    for length, cells in cells_of_cycles(graphs, LONGEST):
        smallest, largest = sizes[cells].T  # of one graph shorter cycles come first
        sizes[cells] = np.stack([np.where(smallest == 0, length, smallest), np.maximum(largest, length)], axis=1)
    return torch.from_numpy(sizes).to(graphs.node_graph.device)


RRWP_RINGS = PseudoCoordinate(
    values=walks_and_rings,
    channels=lambda steps: steps + 3,
    reading="normalised",
    rescaled=True,
    node_values=node_walks_and_rings,
)
