"""The heat kernel: how much of a unit of heat at i has reached j after a time t.

    P_ij = [e^(-t₁L), …, e^(-t_K L)]_ij,   L = I - D^(-½) A D^(-½),   t_k = 2^(k-3) = ¼, ½, 1, 2, …

L is the symmetric normalised Laplacian: its eigenvalues lie in [0, 2] whatever the degrees and the scale of the
weights, so one grid of times means the same on every graph, and P is symmetric. At ¼ almost all heat is still where it
was, at 2ᵏ it has spread over about as many steps of a walk. The diagonal is the heat kernel signature of a node.

Each time is twice the one before, so that each channel is the square of the last: e^(-2tL) = (e^(-tL))². Unlike
eigenvectors, products have gradients on graphs whose eigenvalues coincide, as those of every ring do.

Legend: G graphs, N nodes, n nodes of the largest graph, P pairs, K steps. Defined for every graph:

- directed: directions are ignored, A is (A + Aᵀ)/2;
- weighted: A holds the weights; parallel edges add theirs, an edge of weight zero is no edge;
- isolated nodes and single nodes: no heat leaves them, P_ii = 1 at all times;
- disconnected: zero between components;
- self loops: they slow the flow, A_ii counts in D.
"""

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.chebyshev import heat_at
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.layout import PairReader, adjacency
from ckgconv.pe.walk import nonzero, working_dtype

FIRST_TIME = 0.25
# Each squaring doubles the rounding error: after this many, float64 still has six digits, and heat is at rest.
MOST_STEPS = 32


def heat(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """e^(-tL) for every pair, [P, K]; computed in float64, differentiable in the edge weights.

    Args:
        graphs: packed graphs on any device.
        steps: K, the number of times.
        dtype: of the result; by default that of the edge weights, or torch's default.
    """
    times(steps)  # refuses too many steps
    pairs = PairReader(graphs)
    dtype = dtype or working_dtype(graphs)
    flow = torch.linalg.matrix_exp(-FIRST_TIME * laplacian(graphs))
    channels = [pairs.read(flow).to(dtype)]
    for _ in range(steps - 1):
        flow = flow @ flow
        channels.append(pairs.read(flow).to(dtype))
    return pairs.coordinates(torch.stack(channels, dim=-1))


def times(steps: int) -> list[float]:
    """t₁ … t_K."""
    require(1 <= steps <= MOST_STEPS, f"steps is {steps}: the heat kernel has from 1 to {MOST_STEPS} times.")
    return [FIRST_TIME * 2**step for step in range(steps)]


def laplacian(graphs: PackedGraphs) -> Tensor:
    """[G, n, n] L in float64; rows of isolated nodes, and of padding, are zero."""
    matrix = adjacency(graphs, torch.float64)
    matrix = (matrix + matrix.mT) / 2
    degree = matrix.sum(-1)
    scale = nonzero(degree).rsqrt()
    return torch.diag_embed((degree > 0).to(matrix.dtype)) - scale.unsqueeze(-1) * matrix * scale.unsqueeze(-2)


HEAT = PseudoCoordinate(
    values=heat,
    channels=lambda steps: steps,
    most_steps=MOST_STEPS,
    reading="normalised",
    at_pairs=lambda graphs, steps, receiver, sender, dtype: heat_at(graphs, times(steps), receiver, sender).to(dtype),
    at_pairs_steps=16,  # terms grow with the root of the longest time, and are 800 there
    rescaled=True,  # heat that has spread over n nodes leaves about 1/n at each
    diagonal_skips=0,
    bytes_per_cell=8 * 8,
)
