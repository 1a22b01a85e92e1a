"""Random walks and rings: RRWP, and how many simple cycles run through both nodes of a pair.

    P_ij = [I, M, …, M^K ‖ log(1 + c³)/n, …, log(1 + c⁸)/n]_ij      c^l_ij cycles of l nodes that contain i and j
    node part  [1, M_ii, …, M^K_ii ‖ log(1 + c³_ii), …, log(1 + c⁸_ii)]

c^l_ii counts the cycles through i. The first l with c^l_ij > 0 is the smallest ring that i and j share. Counts of pairs
are divided by n, the nodes of the graph, since a network reads |supp(i)| P_ij: with a global support that is the
logarithm itself.

A cycle is found once, from its smallest node s along nodes above s; a path goes on only while the way back, by
distances from s, leaves it at most as many nodes as are looked for.

Legend: N nodes, P pairs, K steps, C channels, m cycles, l nodes of a cycle. Directions, weights and parallel edges have
no effect on c, apart from edges of weight zero, which are none; neither have self loops.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.rrwp import rrwp
from ckgconv.pe.rwse import return_probabilities
from ckgconv.pe.walk import working_dtype

SHORTEST, LONGEST = 3, 8
LENGTHS = range(SHORTEST, LONGEST + 1)
# Molecules have a few dozen at most. Dense graphs have billions, more than any list can hold.
MOST_CYCLES = 100_000
KEPT = 2**15  # graphs whose cycles are cached, since training prepares each of them in every epoch

Cycle = tuple[int, ...]


def walks_and_cycles(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """P for every pair, [P, K + 7]; walks are differentiable in the edge weights.

    Args:
        graphs: packed graphs on any device; cycles are counted on the CPU.
        steps: K.
        dtype: of the result; by default that of the edge weights, or torch's default.
    """
    return append_to_walks(graphs, torch.log1p(cycle_counts(graphs)), steps, dtype)


def node_walks_and_cycles(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """The node part, [N, K + 7]."""
    return append_to_returns(graphs, torch.log1p(cycle_counts(graphs)), steps, dtype)


def append_to_walks(graphs: PackedGraphs, shared: Tensor, steps: int, dtype: torch.dtype | None) -> Coordinates:
    """Walks ‖ what the nodes of a pair share, [P, C] divided by n; values [P, K + 1 + C]."""
    walks = rrwp(graphs, steps, dtype=dtype)
    order = graphs.sizes.index_select(0, graphs.node_graph).index_select(0, walks.receiver)
    values = torch.cat([walks.values, (shared / order.unsqueeze(-1)).to(walks.values.dtype)], dim=-1)
    return Coordinates(walks.receiver, walks.sender, values, complete=True)


def append_to_returns(graphs: PackedGraphs, shared: Tensor, steps: int, dtype: torch.dtype | None) -> Tensor:
    """[1, M_ii, …, M^K_ii] ‖ what each node shares with itself, from [P, C]; [N, K + 1 + C]."""
    dtype = dtype or working_dtype(graphs)
    returns = return_probabilities(graphs, steps, dtype)
    own = shared.index_select(0, _own_pairs(graphs)).to(dtype)
    return torch.cat([returns.new_ones(graphs.num_nodes, 1), returns, own], dim=-1)


def _own_pairs(graphs: PackedGraphs) -> Tensor:
    """[N] where the pair of each node with itself is, in the order of `all_pairs`."""
    sizes = graphs.sizes.index_select(0, graphs.node_graph)
    first = sizes.cumsum(0) - sizes
    return first + torch.arange(graphs.num_nodes, device=sizes.device) - graphs.node_ptr[graphs.node_graph]


def cycle_counts(graphs: PackedGraphs) -> Tensor:
    """[P, 6] float64, c³ … c⁸ of every pair, in the order of `all_pairs`."""
    counts = np.zeros((number_of_pairs(graphs), len(LENGTHS)))
    for length, cells in cells_of_cycles(graphs, LONGEST):
        np.add.at(counts[:, length - SHORTEST], cells, 1.0)
    return torch.from_numpy(counts).to(graphs.node_graph.device)


def cells_of_cycles(graphs: PackedGraphs, longest: int) -> Iterator[tuple[int, np.ndarray]]:
    """The pairs within every cycle of each length and graph, in the order of `all_pairs`; shorter cycles first."""
    sizes, start = graphs.sizes.tolist(), 0
    for number, (nodes, edges) in enumerate(zip(sizes, _edges_of(graphs), strict=True)):
        found = cycles_of(nodes, edges.tobytes(), longest)
        require(
            sum(map(len, found)) <= MOST_CYCLES,
            f"Graph {number} of the batch has more than {MOST_CYCLES:,} cycles of at most {longest} nodes, too many to "
            f"count: choose encoding 'rrwp' for graphs as dense.",
        )
        for length, cycles in enumerate(found, SHORTEST):
            if len(cycles):
                yield length, (start + cycles[:, :, None] * nodes + cycles[:, None, :]).ravel()
        start += nodes**2


def number_of_pairs(graphs: PackedGraphs) -> int:
    """P of all pairs of nodes of one graph."""
    return int(graphs.sizes.square().sum())


@lru_cache(maxsize=KEPT)
def cycles_of(nodes: int, edges: bytes, longest: int) -> tuple[np.ndarray, ...]:
    """All simple cycles of three nodes [m, 3], of four [m, 4], …; in all at most one more than `MOST_CYCLES`.

    `edges` are int64 pairs (i, j), each once.
    """
    neighbours: list[list[int]] = [[] for _ in range(nodes)]
    for i, j in np.frombuffer(edges, dtype=np.int64).reshape(-1, 2).tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    found: dict[int, list[Cycle]] = {length: [] for length in range(SHORTEST, longest + 1)}
    for cycle in islice(_all_cycles(neighbours, longest), MOST_CYCLES + 1):
        found[len(cycle)].append(cycle)
    return tuple(np.array(cycles, dtype=np.int64).reshape(-1, length) for length, cycles in found.items())


def _edges_of(graphs: PackedGraphs) -> Iterator[np.ndarray]:
    """Edges [E, 2] of each graph by local numbers, smaller first, each once, in order."""
    walkable = (graphs.receiver != graphs.sender) & (graphs.weights(torch.float32) > 0)
    one, other = graphs.receiver[walkable], graphs.sender[walkable]
    keys = torch.unique(torch.minimum(one, other) * graphs.num_nodes + torch.maximum(one, other))
    ends = torch.stack([keys // graphs.num_nodes, keys % graphs.num_nodes], dim=1) if len(keys) else keys.view(0, 2)
    borders = torch.searchsorted(ends[:, 0].contiguous(), graphs.node_ptr).tolist()
    local = (ends - graphs.node_ptr[graphs.node_graph[ends]]).cpu().numpy()
    for first, end in pairwise(borders):
        yield local[first:end]


def _all_cycles(neighbours: list[list[int]], longest: int) -> Iterator[Cycle]:
    """Every cycle once, from its smallest node."""
    for start in range(len(neighbours)):
        yield from _extended([start], neighbours, _distances(start, neighbours, longest), longest)


def _extended(path: list[int], neighbours: list[list[int]], back: dict[int, int], longest: int) -> Iterator[Cycle]:
    """Cycles that begin with `path`; `back` [node] steps back to its first node."""
    for node in neighbours[path[-1]]:
        # A cycle is found in both directions: keep the one whose second node is smaller than its last.
        if node == path[0] and len(path) >= SHORTEST and path[1] < path[-1]:
            yield tuple(path)
        elif node in back and node not in path and len(path) + back[node] <= longest:
            path.append(node)
            yield from _extended(path, neighbours, back, longest)
            path.pop()


def _distances(start: int, neighbours: list[list[int]], longest: int) -> dict[int, int]:
    """Steps from `start` to nodes above it along such nodes, as far as a cycle can reach."""
    found, edge = {start: 0}, [start]
    for step in range(1, longest // 2 + 1):
        near = {node for last in edge for node in neighbours[last] if node > start and node not in found}
        found.update(dict.fromkeys(near, step))
        edge = list(near)
    return found


RRWP_CYCLES = PseudoCoordinate(
    values=walks_and_cycles,
    channels=lambda steps: steps + 1 + len(LENGTHS),
    reading="normalised",
    rescaled=True,
    node_values=node_walks_and_cycles,
)
