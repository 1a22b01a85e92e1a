"""Random walks, cycles and rings: how many short cycles run through both nodes of a pair, and how long any may be.

    P_ij = [I, M, …, M^K ‖ log(1 + c³)/n, …, log(1 + c⁸)/n ‖ s/n, l/n]_ij      c^l_ij of `cycles`, s and l of `rings`
    node part  [1, M_ii, …, M^K_ii ‖ log(1 + c³_ii), …, log(1 + c⁸_ii) ‖ s_ii, l_ii]

Counts tell fused from single rings, and stop at eight nodes; sizes say that there is a macrocycle, and not how many
rings make it up. The largest errors on ZINC are molecules of the second kind (`benchmarks/largest_errors.py`).

Legend: N nodes, P pairs, K steps.
"""

import torch
from torch import Tensor

from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.cycles import LENGTHS, append_to_returns, append_to_walks, cycle_counts
from ckgconv.pe.rings import ring_sizes


def walks_cycles_and_rings(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """P for every pair, [P, K + 9]; walks are differentiable in the edge weights.

    Args:
        graphs: packed graphs on any device; cycles are found on the CPU.
        steps: K.
        dtype: of the result; by default that of the edge weights, or torch's default.
    """
    return append_to_walks(graphs, counts_and_sizes(graphs), steps, dtype)


def node_walks_cycles_and_rings(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """The node part, [N, K + 9]."""
    return append_to_returns(graphs, counts_and_sizes(graphs), steps, dtype)


def counts_and_sizes(graphs: PackedGraphs) -> Tensor:
    """[P, 8] float64: log(1 + c³) … log(1 + c⁸), s and l of every pair, in the order of `all_pairs`."""
    return torch.cat([torch.log1p(cycle_counts(graphs)), ring_sizes(graphs)], dim=1)


RRWP_CYCLES_RINGS = PseudoCoordinate(
    values=walks_cycles_and_rings,
    channels=lambda steps: steps + 1 + len(LENGTHS) + 2,
    reading="normalised",
    rescaled=True,
    node_values=node_walks_cycles_and_rings,
)
