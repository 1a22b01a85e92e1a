"""A named encoding and a support → pairs and node part: the one place where their names are resolved.

encoding   pair values                          node part
rrwp       [I, M, …, M^steps]_ij                its diagonal, without I
spd        hop distance, clipped at `steps`     RWSE of `node_steps`
rd         effective resistance                 RWSE of `node_steps`
pair_rwse  RWSE(i) ‖ RWSE(j) of `steps`         RWSE of `node_steps`
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Coordinates, PackedGraphs, Pairs
from ckgconv.pairs.memory import check_memory
from ckgconv.pairs.support import global_support, hop_support
from ckgconv.pe import diagonal, pair_rwse, rd, rrwp, rwse, sparse_rrwp, sparse_rwse, spd
from ckgconv.pe.layout import LARGEST_PADDED

EncodingName = Literal["rrwp", "spd", "rd", "pair_rwse"]
Support = Literal["global", "sparse_global"] | int


@dataclass(frozen=True)
class Encoding:
    """What to compute for a batch of graphs before a network sees it."""

    name: EncodingName
    steps: int
    node_steps: int
    support: Support

    def __post_init__(self) -> None:
        require(
            self.name in get_args(EncodingName),
            f"The encoding is {self.name!r}: choose one of {', '.join(get_args(EncodingName))}.",
        )
        require(self.steps >= 0, f"steps is {self.steps}: give 0 or more.")
        require(self.node_steps >= 0, f"node_steps is {self.node_steps}: give 0 or more.")
        require(
            self.support in ("global", "sparse_global") or (isinstance(self.support, int) and self.support >= 0),
            f"The support is {self.support!r}: choose 'global', 'sparse_global' or a number of hops.",
        )
        require(
            self.support != "sparse_global" or self.name == "rrwp",
            f"The sparse global support needs coordinates that are zero between far nodes; {self.name!r} has "
            f"none: choose encoding 'rrwp', support 'global' or a number of hops.",
        )

    @property
    def source(self) -> str:
        """What a transform of `ckgconv.pe` writes when it precomputes this encoding."""
        names = {"rrwp": f"rrwp {self.steps} published", "rd": "rd"}
        return names.get(self.name, f"{self.name} {self.steps}")

    @property
    def walks_whole_graphs(self) -> bool:
        """Whether pairs and coordinates of a batch can be computed in fixed shapes, without looking at the graphs."""
        return self.name == "rrwp" and self.support == "global"

    @property
    def keeps_edges(self) -> bool:
        """Whether every edge lies inside the support."""
        return self.support != 0

    @property
    def stores_some(self) -> bool:
        """Whether only pairs of near nodes are stored."""
        return self.support != "global"

    @property
    def reach(self) -> int:
        """Hops beyond which no pair is stored, where only some are."""
        return self.support if isinstance(self.support, int) else max(self.steps, 1)

    @property
    def channels(self) -> int:
        """C, the number of coordinate channels of a pair."""
        return {"rrwp": self.steps + 1, "spd": 1, "rd": 1, "pair_rwse": 2 * self.steps}[self.name]

    @property
    def node_channels(self) -> int:
        """K, the number of channels of the node part."""
        return self.steps if self.name == "rrwp" else self.node_steps

    def coordinates(self, graphs: PackedGraphs, dtype: torch.dtype) -> Coordinates:
        if self.name == "rrwp" and self._walks_sparsely(graphs):
            return sparse_rrwp(graphs, self.steps, dtype=dtype)
        check_memory(graphs, self.channels, dtype, self.name in ("spd", "rd"), self._way_out())
        if self.name == "rrwp":
            return rrwp(graphs, self.steps, dtype=dtype)
        if self.name == "spd":
            return spd(graphs, self.steps)
        return rd(graphs, dtype) if self.name == "rd" else pair_rwse(graphs, self.steps, dtype)

    def node_part(self, graphs: PackedGraphs, coordinates: Coordinates, dtype: torch.dtype) -> Tensor:
        """[N, K] return probabilities."""
        if self.name == "rrwp":
            return diagonal(coordinates)
        walk = rwse if int(graphs.sizes.max()) <= LARGEST_PADDED else sparse_rwse
        return walk(graphs, self.node_steps, dtype)

    def pairs(self, graphs: PackedGraphs, coordinates: Coordinates, dtype: torch.dtype) -> Pairs:
        if isinstance(self.support, int):
            return hop_support(graphs, coordinates, self.support, dtype)
        return global_support(graphs, coordinates, dtype)

    def _way_out(self) -> str:
        """What to do where all pairs are too many."""
        if self.name != "rrwp":
            return "choose encoding 'rrwp' with support 'sparse_global' or a number of hops"
        if self.support == "global":
            return "choose support 'sparse_global' (the same numbers) or a number of hops"
        return "choose fewer steps"

    def _walks_sparsely(self, graphs: PackedGraphs) -> bool:
        if isinstance(self.support, int):
            return int(graphs.sizes.max()) > LARGEST_PADDED
        return self.support == "sparse_global"
