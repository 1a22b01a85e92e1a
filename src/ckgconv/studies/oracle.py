"""Which pairs of graphs GD-WL separates, by distance.

    χ(v) ← hash {{ (d(v, u), χ(u)) : u ∈ V }}   from equal colours until stable
    separated: the multisets of the colours of two graphs differ

Distances are computed in float64, where rounding leaves errors below 1e-12 in them; values of one pair of graphs
closer than `gdwl.TOLERANCE` = 1e-9 are equal, and a chain of close values is one value.

Legend: Q pairs of graphs, N nodes of two graphs.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from ckgconv.data.expressiveness import GraphPairs
from ckgconv.graphs import Coordinates, PackedGraphs, pack
from ckgconv.pe import rd, rrwp, spd
from ckgconv.theory import refine_colours

# Above the diameter of every graph here, so that no distance is clipped.
LONGEST = 200
# I, M, …, M²⁰: the 21 channels for which counts are on record.
STEPS = 20
Distance = Callable[[PackedGraphs], Coordinates]
Separated = NDArray[np.bool_]  # [Q]


def neighbours(graphs: PackedGraphs) -> Coordinates:
    """Itself, neighbour or neither: with it GD-WL is 1-WL."""
    walk = rrwp(graphs, 1, dtype=torch.float64)
    return Coordinates(walk.receiver, walk.sender, (walk.values > 0).double(), complete=True)


DISTANCES: dict[str, Distance] = {
    "1-WL": neighbours,
    "SPD": lambda graphs: spd(graphs, LONGEST),
    "RD": lambda graphs: rd(graphs, torch.float64),
    "RRWP": lambda graphs: rrwp(graphs, STEPS, dtype=torch.float64),
}


def gdwl_separates(pairs: GraphPairs, distance: Distance) -> Separated:
    """[Q] whether the stable colours of the two graphs differ."""
    numbers = torch.stack([pairs.first, pairs.second], dim=1)
    return np.array([_separates(pairs, both, distance) for both in numbers])


def classes(pairs: GraphPairs, separated: Separated) -> int:
    """How many classes the graphs of a family fall into, where every two of them are compared.

    A graph separated from one graph is separated from all of that graph's class, so each class is counted once, by its
    first graph.
    """
    together = pairs.second[torch.from_numpy(~separated)]
    graphs = torch.cat([pairs.first, pairs.second]).unique()
    return len(graphs) - len(together.unique())


def _separates(pairs: GraphPairs, both: torch.Tensor, distance: Distance) -> bool:
    data = pairs.dataset.batch(both)
    graphs = pack(data.edge_index, data.batch)
    colours = refine_colours(graphs, distance(graphs))
    of_first = data.batch.numpy() == 0
    return not np.array_equal(np.sort(colours[of_first]), np.sort(colours[~of_first]))
