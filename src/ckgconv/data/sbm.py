"""Stochastic block models, deterministic in a seed: PATTERN, CLUSTER, one large graph, and one with directions.

    W_ij = W_ji ~ Bern(p) inside a community, Bern(q) between communities, i < j

CLUSTER: six communities, one labelled node in each; the label of a node is its community. PATTERN: five background
communities and a planted random pattern, shared by 140 graphs; the label says which nodes belong to the pattern. The
large graph: five communities of 400 nodes, each node with 6 neighbours inside its community and 2 outside on average,
one node in twenty labelled; nodes, not graphs, are split. The cyclic graph: the same communities in a ring, each node
with 4 edges to nodes of the next community and 2 to nodes of any other on average. Read without directions, the
community before a node looks like the one after it.

The published notebooks set no seed, so PATTERN and CLUSTER equal the official ones in distribution, not graph by graph.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from ckgconv.data.packed import NO_SPLIT, PackedDataset, from_arrays, narrowed

Array = NDArray[np.generic]

# Community sizes are drawn from 5 … 34.
SMALLEST, LARGEST = 5, 34
CLUSTER_COMMUNITIES, CLUSTER_INSIDE, CLUSTER_BETWEEN = 6, 0.55, 0.25
PATTERN_COMMUNITIES, PATTERN_INSIDE, PATTERN_BETWEEN = 5, 0.5, 0.35
PATTERN_EDGE, PATTERN_FEATURES, PATTERNS = 0.5, 3, 100
LARGE_COMMUNITIES, LARGE_SIZE = 5, 400
# Mean number of neighbours of a node inside its community, and outside; nodes per community whose label is a feature.
LARGE_INSIDE, LARGE_OUTSIDE, LARGE_LABELLED = 6, 2, 20
CYCLIC_NEXT, CYCLIC_OTHERS = 4, 2  # mean number of edges from a node to the next community, and to all others


@dataclass(frozen=True)
class Graph:
    """One drawn graph: node features and labels [n], edges [2, e] in both directions."""

    features: Array
    labels: Array
    edges: Array


def cluster(seed: int, sizes: tuple[int, int, int] = (10_000, 1_000, 1_000)) -> PackedDataset:
    """CLUSTER with `sizes` train, validation and test graphs."""
    rng = np.random.default_rng(seed)
    graphs = [_cluster_graph(rng) for _ in range(sum(sizes))]
    return _packed(graphs, sizes, features=CLUSTER_COMMUNITIES + 1)


def pattern(seed: int, sizes: tuple[int, int, int] = (100, 20, 20), patterns: int = PATTERNS) -> PackedDataset:
    """PATTERN with `sizes` train, validation and test graphs for each of `patterns` planted patterns."""
    rng = np.random.default_rng(seed)
    drawn: list[list[Graph]] = [[], [], []]
    for _ in range(patterns):
        planted = _draw_pattern(rng)
        for split, count in zip(drawn, sizes, strict=True):
            split.extend(_pattern_graph(rng, planted) for _ in range(count))
    totals = (len(drawn[0]), len(drawn[1]), len(drawn[2]))
    return _packed([graph for split in drawn for graph in split], totals, features=PATTERN_FEATURES)


def large(seed: int) -> PackedDataset:
    """One graph of 2,000 nodes. Labelled nodes are in no split, since their features contain their labels.

    Of the other nodes about two fifths are for training, one fifth for validation, two fifths for testing.
    """
    label = np.repeat(np.arange(LARGE_COMMUNITIES), LARGE_SIZE)
    inside, outside = LARGE_INSIDE / (LARGE_SIZE - 1), LARGE_OUTSIDE / (len(label) - LARGE_SIZE)
    probability = np.where(label[:, None] == label, inside, outside)
    return _one_graph(np.random.default_rng(seed), label, lambda rng: _draw_edges(rng, probability))


def cyclic(seed: int) -> PackedDataset:
    """One directed graph of 2,000 nodes, labelled and split as `large`."""
    label = np.repeat(np.arange(LARGE_COMMUNITIES), LARGE_SIZE)
    follows = (label[:, None] + 1) % LARGE_COMMUNITIES == label
    probability = np.where(follows, CYCLIC_NEXT / LARGE_SIZE, CYCLIC_OTHERS / (len(label) - LARGE_SIZE))
    np.fill_diagonal(probability, 0)
    return _one_graph(np.random.default_rng(seed), label, lambda rng: rng.random(probability.shape) < probability)


def _one_graph(rng: Generator, label: Array, draw: Callable[[Generator], Array]) -> PackedDataset:
    """A graph of labelled communities with drawn edges, whose nodes are split."""
    member = np.tile(np.arange(LARGE_SIZE), LARGE_COMMUNITIES)  # number within the community
    graph = _shuffled(rng, np.where(member < LARGE_LABELLED, label.astype(np.int64) + 1, 0), label, draw(rng))
    packed = _packed([graph], (1, 0, 0), features=LARGE_COMMUNITIES + 1)
    split = rng.choice([0, 0, 1, 2, 2], len(label))
    split[graph.features.astype(bool)] = NO_SPLIT
    return replace(packed, node_split=torch.from_numpy(narrowed(split)), val=packed.train, test=packed.train)


def _cluster_graph(rng: Generator) -> Graph:
    sizes = rng.integers(SMALLEST, LARGEST + 1, CLUSTER_COMMUNITIES)
    label = np.repeat(np.arange(CLUSTER_COMMUNITIES), sizes)
    feature = np.zeros(len(label), dtype=np.int64)
    chosen = sizes.cumsum() - sizes + rng.integers(0, sizes)
    feature[chosen] = np.arange(CLUSTER_COMMUNITIES) + 1
    probability = np.where(label[:, None] == label, CLUSTER_INSIDE, CLUSTER_BETWEEN)
    return _shuffled(rng, feature, label, _draw_edges(rng, probability))


@dataclass(frozen=True)
class Pattern:
    """A planted pattern: adjacency [m, m] and node features [m]."""

    adjacency: Array
    features: Array


def _draw_pattern(rng: Generator) -> Pattern:
    size = int(rng.integers(SMALLEST, LARGEST + 1))
    return Pattern(_draw_edges(rng, np.full((size, size), PATTERN_EDGE)), rng.integers(0, PATTERN_FEATURES, size))


def _pattern_graph(rng: Generator, planted: Pattern) -> Graph:
    sizes = rng.integers(SMALLEST, LARGEST + 1, PATTERN_COMMUNITIES)
    community = np.repeat(np.arange(PATTERN_COMMUNITIES), sizes)
    background, size = len(community), len(planted.features)
    probability = np.full((background + size,) * 2, PATTERN_EDGE)
    probability[:background, :background] = np.where(community[:, None] == community, PATTERN_INSIDE, PATTERN_BETWEEN)
    adjacency = _draw_edges(rng, probability)
    adjacency[background:, background:] = planted.adjacency
    features = np.concatenate([rng.integers(0, PATTERN_FEATURES, background), planted.features])
    label = np.repeat([0, 1], [background, size])
    return _shuffled(rng, features, label, adjacency)


def _draw_edges(rng: Generator, probability: NDArray[np.float64]) -> NDArray[np.bool_]:
    """A symmetric adjacency with empty diagonal, one Bernoulli draw per unordered pair."""
    above = np.triu(rng.random(probability.shape, dtype=np.float32) < probability, 1)
    return above | above.T


def _shuffled(rng: Generator, features: Array, labels: Array, adjacency: Array) -> Graph:
    order = rng.permutation(len(labels))
    edges = np.stack(np.nonzero(adjacency[np.ix_(order, order)])).astype(np.int16)
    return Graph(features[order], labels[order], edges)


def _packed(graphs: list[Graph], sizes: tuple[int, int, int], features: int) -> PackedDataset:
    def joined(part: Callable[[Graph], Array]) -> Array:
        return np.concatenate([part(graph) for graph in graphs])

    bounds = np.cumsum([0, *sizes])
    splits = {f"{name}_idx": np.arange(bounds[i], bounds[i + 1]) for i, name in enumerate(("train", "val", "test"))}
    arrays: dict[str, Array] = {
        "num_nodes": np.array([len(graph.labels) for graph in graphs]),
        "num_edges": np.array([graph.edges.shape[1] for graph in graphs]),
        "edge_index": np.concatenate([graph.edges for graph in graphs], axis=1),
        # One-hot, as the benchmark gives them.
        "x": np.eye(features, dtype=np.float16)[joined(lambda graph: graph.features).astype(np.int64)],
        "y": narrowed(joined(lambda graph: graph.labels)),
        **splits,
    }
    return from_arrays({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()})
