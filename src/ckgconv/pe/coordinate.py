"""What a pseudo-coordinate is to the rest of the package: how P_ij is computed, stored and read.

A new one is a file of `ckgconv.pe` that ends with a `PseudoCoordinate`, and a line in `COORDINATES`; or an entry point
of the group "ckgconv.coordinates" in a package of one's own.

Legend: G graphs, N nodes, n nodes of the largest graph, P pairs, C channels, K channels of the node part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ckgconv.graphs import Coordinates, PackedGraphs

# How a network turns P_ij into features (`nn.coordinates` has a module for each):
# normalised  γ BN(P_ij) + β, then projected
# raw         projected as it is
# table       a learned vector for each whole number up to `steps`, and one for unreachable pairs
# gaussian    a Gaussian basis of one positive number; a vector of its own where that is infinite
Reading = Literal["normalised", "raw", "table", "gaussian"]
Compute = Callable[[PackedGraphs, int, torch.dtype], Coordinates]
NodeValues = Callable[[PackedGraphs, int, torch.dtype], Tensor]
ComputeAt = Callable[[PackedGraphs, int, Tensor, Tensor, torch.dtype], Tensor]


@dataclass(frozen=True)
class PseudoCoordinate:
    """One way to place a pair of nodes (i, j).

    Args:
        values: (graphs, steps, dtype) → the coordinates of every pair, [P, C]; [P] int64 where read by a table.
        channels: steps → C.
        reading: how the network reads them.
        sparse: the same values, only at the pairs within `steps` hops, where every other pair is exactly zero;
            this admits the sparse global support. None where far pairs are not zero.
        at_pairs: (graphs, steps, receiver [P], sender [P], dtype) → the same values [P, C] of the given pairs, distinct
            and sorted, without forming the n² others: for supports of k hops, or a user's own, on large graphs. None:
            all pairs are computed, and the given ones read.
        at_pairs_steps: most steps for which `at_pairs` is used; None: any.
        padded_at: (graphs, steps, receiver [P], sender [P], dtype) → the same values [P, C], bit by bit, of the given
            pairs of small graphs, whose padded matrices hold all; None: all pairs are read.
        rescaled: whether values shrink as the support grows, as probabilities do, so that a network reads
            |supp(i)| P_ij (Appendix A.2).
        walk_powers: whether the values are [I, M, …, M^steps]_ij and nothing else: degrees may be injected into them
            (Eq. 8), and a GPU computes them in fixed shapes on its own.
        diagonal_skips: the node part is the diagonal P_ii without this number of leading channels; None: RWSE.
        node_values: (graphs, steps, dtype) → [N, K], a node part that is neither; K is `channels(steps)`.
        signed: whether the sign of each of the first `steps` channels of the node part is arbitrary in each graph.
        least_steps, most_steps: bounds of a network's steps; None: no upper bound.
        bytes_per_cell: of the padded matrices [G, n, n] in which they are computed; None: three in the result's dtype.
        source: what a transform that precomputes them writes to name them, `pair_source`.
    """

    values: Compute
    channels: Callable[[int], int]
    reading: Reading
    sparse: Compute | None = None
    at_pairs: ComputeAt | None = None
    at_pairs_steps: int | None = None
    padded_at: ComputeAt | None = None
    rescaled: bool = False
    walk_powers: bool = False
    diagonal_skips: int | None = None
    node_values: NodeValues | None = None
    signed: bool = False
    least_steps: int = 1
    most_steps: int | None = None
    bytes_per_cell: int | None = None
    source: str = "{name} {steps}"

    @property
    def whole_numbers(self) -> bool:
        """Whether values are int64 [P], not floating [P, C]."""
        return self.reading == "table"

    @property
    def may_be_infinite(self) -> bool:
        """Whether pairs without a path have an infinite value."""
        return self.reading == "gaussian"

    def computes_some_pairs(self, steps: int) -> bool:
        """Whether the values of some pairs can be computed without all others."""
        return self.at_pairs is not None and (self.at_pairs_steps is None or steps <= self.at_pairs_steps)

    def node_channels(self, steps: int, node_steps: int) -> int:
        """K."""
        if self.node_values is not None:
            return self.channels(steps)
        return node_steps if self.diagonal_skips is None else self.channels(steps) - self.diagonal_skips

    def diagonal(self, coordinates: Coordinates) -> Tensor:
        """P_ii [N, K], the node part of a coordinate that brings its own."""
        return coordinates.values[coordinates.receiver == coordinates.sender][:, self.diagonal_skips :]

    def cell_bytes(self, dtype: torch.dtype) -> int:
        """Bytes of each padded cell while values are computed."""
        return 3 * dtype.itemsize if self.bytes_per_cell is None else self.bytes_per_cell
