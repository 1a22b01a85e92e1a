"""Relative random-walk probabilities of padded graphs at static capacity, as the equation reads.

    P_ij = [I, M, M², …, M^K]_ij

Legend: G graphs, n nodes of the largest, K steps, R rows: pairs of graph g from starts[g] on, row by row.
"""

import torch
from torch import Tensor


def walk_coordinates(matrix: Tensor, sizes: Tensor, starts: Tensor, steps: int, rows: int) -> Tensor:
    """[R, K + 1] from M [G, n, n], sizes and starts [G]; rows after the last pair are zero."""
    power = torch.eye(matrix.shape[1], dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
    cells, real = pair_cells(sizes, starts, matrix.shape[1], rows)
    channels = []
    for step in range(steps + 1):
        channels.append(power.reshape(-1)[cells] * real)
        power = power @ matrix if step < steps else power
    return torch.stack(channels, dim=-1)


def pair_cells(sizes: Tensor, starts: Tensor, largest: int, rows: int) -> tuple[Tensor, Tensor]:
    """Index of each row in flattened [G, n, n] matrices, and whether it is a pair at all."""
    row = torch.arange(rows, device=sizes.device)
    graph = torch.searchsorted(starts + sizes**2, row, right=True)
    real = graph < sizes.shape[0]
    graph = graph.clamp(max=sizes.shape[0] - 1)
    within = torch.where(real, row - starts[graph], 0)
    size = sizes[graph].clamp(min=1)
    return (graph * largest + within // size) * largest + within % size, real
