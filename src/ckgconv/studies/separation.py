"""Pairs of graphs, and which of them GD-WL and networks separate, group by group.

Legend: Q pairs of graphs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from ckgconv.data.expressiveness import GraphPairs
from ckgconv.studies.oracle import DISTANCES, Separated, gdwl_separates
from ckgconv.studies.processes import in_one_thread
from ckgconv.studies.random_network import DistanceName, Measured, measure, random_network

NETWORKS: tuple[DistanceName, ...] = ("SPD", "RD", "RRWP")


@dataclass
class Family:
    """Pairs of graphs with results for each: GD-WL by distance, networks by distance and width."""

    pairs: GraphPairs
    widths: tuple[int, ...]
    oracle: dict[str, Separated] = field(default_factory=dict)
    networks: dict[tuple[DistanceName, int], list[Measured]] = field(default_factory=dict)  # one per seed

    def groups(self) -> dict[str, Separated]:
        """Rows of the table: their names, and the pairs in each."""
        names = np.array(self.pairs.group)
        return {str(name): names == name for name in dict.fromkeys(self.pairs.group)}

    def found(self, distance: DistanceName, width: int | None = None) -> Separated:
        """[Q] whether the network of any seed separates a pair; the widest networks unless a width is named."""
        runs = self.networks[distance, width or self.widths[-1]]
        found: Separated = np.any([run.separated for run in runs], axis=0)
        return found

    def beyond(self, distance: DistanceName) -> int:
        """Pairs that some network separates though its GD-WL does not: by the bound there are none."""
        found = np.any([self.found(distance, width) for width in self.widths], axis=0)
        return int((found & ~self.oracle[distance]).sum())

    def missed(self, distance: DistanceName) -> int:
        """Pairs that GD-WL separates and the widest networks do not."""
        return int((self.oracle[distance] & ~self.found(distance)).sum())


def consult_oracle(family: Family) -> None:
    """GD-WL with every distance."""
    for name, distance in DISTANCES.items():
        family.oracle[name] = gdwl_separates(family.pairs, distance)


def draw_networks(families: Sequence[Family], seeds: Iterable[int], sample: Data) -> None:
    """Measure all pairs by a network of every distance, width and seed."""
    widths = sorted({width for family in families for width in family.widths})
    drawn = [
        (distance, width, seed, sample, [family.pairs for family in families if width in family.widths])
        for distance, width, seed in product(NETWORKS, widths, seeds)
    ]
    for (distance, width, *_), found in zip(drawn, in_one_thread(measured_pairs, drawn), strict=True):
        for family in families:
            if width in family.widths:
                family.networks.setdefault((distance, width), []).append(found.pop(0))


def measured_pairs(
    distance: DistanceName, width: int, seed: int, sample: Data, families: list[GraphPairs]
) -> list[Measured]:
    """All pairs of every family by one random network."""
    network = random_network(distance, width, seed, sample)
    return [measure(network, pairs) for pairs in families]


def statistics_sample(pairs: GraphPairs) -> Data:
    """Graphs whose statistics the networks keep: every eighth of a family, of those with at most 64 nodes."""
    graphs = torch.arange(0, pairs.dataset.num_graphs, 8)
    return pairs.dataset.batch(graphs[pairs.dataset.node_ptr.diff()[graphs] <= 64])


def raw(family: Family) -> dict[str, Any]:
    """Counts by group, and for every network its noise and how far the two kinds of pairs lie from it."""
    counts = {
        name: {
            "pairs": int(inside.sum()),
            "GD-WL": {distance: int(separated[inside].sum()) for distance, separated in family.oracle.items()},
            "CKGCN": {
                f"{distance}, width {width}": [int(run.separated[inside].sum()) for run in runs]
                for (distance, width), runs in family.networks.items()
            },
        }
        for name, inside in family.groups().items()
    }
    margins = {
        f"{distance}, width {width}": [margin(run, family.oracle[distance]) for run in runs]
        for (distance, width), runs in family.networks.items()
    }
    return {"counts": counts, "margins": margins}


def margin(run: Measured, bound: Separated) -> dict[str, float | None]:
    """Noise of a network; largest difference of pairs its GD-WL does not separate, smallest of those it does."""
    difference = run.difference.numpy()
    equal, different = difference[~bound], difference[bound]
    return {
        "noise": run.noise,
        "largest where GD-WL sees none": float(equal.max()) if len(equal) else None,
        "smallest where GD-WL sees one": float(different.min()) if len(different) else None,
    }
