"""Relative random-walk probabilities (Section 3.2.1).

    P_ij = [I, M, M², …]_ij,   M = D⁻¹A

Legend: N nodes, P pairs, C channels. Defined for every graph:

- directed: a walk from i steps to the senders of i, against its incoming edges where the target receives; M is
  normalised by the number of senders;
- weighted: A holds the weights, rows of M still sum to one;
- isolated nodes and single nodes: I alone, rows of M are zero;
- disconnected: zero between components;
- self loops: a walk may stay, M_ii > 0;
- duplicate edges: their weights add up, so two parallel edges are one of weight two;
- no edges: I alone.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.layout import PairReader
from ckgconv.pe.walk import powers_at, sparse_powers, sparse_transition, transition, working_dtype

Counting = Literal["published", "paper"]


def rrwp(
    graphs: PackedGraphs, steps: int, counting: Counting = "published", dtype: torch.dtype | None = None
) -> Coordinates:
    """P for every pair of every graph, Σ n² rows.

    Args:
        graphs: packed graphs on any device; differentiable in their edge weights.
        steps: K.
        counting: what K counts. "published": I, M¹ … M^K, as the published model (C = K + 1);
            "paper": I, M¹ … M^(K-1), as the text of the paper (C = K).
        dtype: of the result; by default that of the edge weights, or torch's default.
    """
    pairs = PairReader(graphs)
    return pairs.coordinates(_walks(graphs, pairs, highest_power(steps, counting), dtype or working_dtype(graphs)))


def rrwp_at(graphs: PackedGraphs, steps: int, receiver: Tensor, sender: Tensor, dtype: torch.dtype) -> Tensor:
    """[P, C] the same values, read only at pairs (receiver, sender) of one graph each."""
    return _walks(graphs, PairReader(graphs, (receiver, sender)), highest_power(steps, "published"), dtype)


def _walks(graphs: PackedGraphs, pairs: PairReader, order: int, dtype: torch.dtype) -> Tensor:
    """[P, C] I, M … M^order at the pairs of a reader."""
    # On a CPU float64 costs little here. Rounded at the end, pairs that a symmetry of the graph exchanges have the same
    # bits, and a kernel computes equal rows once.
    matrix = transition(graphs, torch.float64 if graphs.node_graph.device.type == "cpu" else dtype)
    return powers_at(pairs, matrix, order, dtype)


def sparse_rrwp(
    graphs: PackedGraphs, steps: int, counting: Counting = "published", dtype: torch.dtype | None = None
) -> Coordinates:
    """The same values, but only the pairs that a walk of at most the highest power reaches, the diagonal included.

    Time and memory grow with the reached pairs, not with n²: for graphs whose pairs do not fit into memory.
    """
    matrix = sparse_transition(graphs, dtype or working_dtype(graphs))
    return sparse_powers(matrix, highest_power(steps, counting))


def diagonal(coordinates: Coordinates, counting: Counting = "published") -> Tensor:
    """Node part of RRWP: P_ii, [N, K]; the published model leaves out the constant first channel."""
    values = coordinates.values[coordinates.receiver == coordinates.sender]
    return values[:, 1:] if counting == "published" else values


def highest_power(steps: int, counting: Counting) -> int:
    """The exponent of the last channel."""
    require(
        counting in get_args(Counting),
        f"counting is {counting!r}: choose one of {', '.join(get_args(Counting))}.",
    )
    order = steps if counting == "published" else steps - 1
    require(order >= 0, f"steps is {steps} with counting {counting!r}: no channel is left, give more steps.")
    return order


RRWP = PseudoCoordinate(
    values=lambda graphs, steps, dtype: rrwp(graphs, steps, dtype=dtype),
    channels=lambda steps: steps + 1,
    reading="normalised",
    sparse=lambda graphs, steps, dtype: sparse_rrwp(graphs, steps, dtype=dtype),
    padded_at=rrwp_at,
    rescaled=True,
    walk_powers=True,
    diagonal_skips=1,  # I is one on every diagonal
    source="{name} {steps} published",
)
