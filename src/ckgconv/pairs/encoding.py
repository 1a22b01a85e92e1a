"""A pseudo-coordinate and a support → pairs and node part: what every model is given.

encoding            pair values                                node part
rrwp                [I, M, …, M^steps]_ij                      its diagonal, without I
two_way_rrwp        rrwp against the edges ‖ along them        its diagonal, without I
looped_walks        rrwp with GCN's matrix S in place of M     its diagonal, without I
heat                [e^(-tL)]_ij at `steps` times              its diagonal
laplacian           φ_k(i) φ_k(j) of `steps` eigenvectors      φ_k(i)
spd                 hop distance, clipped at `steps`           RWSE of `node_steps`
rd                  effective resistance                       RWSE of `node_steps`
pair_rwse           RWSE(i) ‖ RWSE(j) of `steps`               RWSE of `node_steps`
rrwp_cycles         rrwp ‖ counts of shared cycles             its diagonal
rrwp_rings          rrwp ‖ sizes of shared rings               its diagonal
rrwp_cycles_rings   rrwp ‖ both                                its diagonal
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import check_choice, check_whole, require
from ckgconv.graphs import SOURCE_TO_TARGET, Coordinates, Flow, PackedGraphs, Pairs
from ckgconv.pairs.by_size import all_pairs_by_size, at_pairs_by_size, nodes_by_size
from ckgconv.pairs.memory import check_memory
from ckgconv.pairs.support import chosen_pairs, global_support, hop_support
from ckgconv.pe import COORDINATES, PseudoCoordinate, pairs_within
from ckgconv.pe.layout import LARGEST_PADDED
from ckgconv.pe.rwse import return_probabilities
from ckgconv.pe.sparse import from_keys
from ckgconv.recipe import ModelRecipe

Support = Literal["global", "sparse_global"] | int


def encoding_of(recipe: ModelRecipe) -> "Encoding":
    """The encoding that a model's recipe names."""
    coordinate = COORDINATES[recipe.encoding]
    least, most = coordinate.least_steps, coordinate.most_steps
    require(recipe.steps >= least, f"model.steps is {recipe.steps}: give at least {least}.")
    require(
        most is None or recipe.steps <= most,
        f"model.steps is {recipe.steps}: {recipe.encoding!r} takes at most {most}.",
    )
    return Encoding(recipe.encoding, recipe.steps, recipe.node_steps, recipe.support, recipe.flow)


@dataclass(frozen=True)
class Encoding:
    """What to compute for a batch of graphs before a network sees it."""

    name: str  # of COORDINATES
    steps: int
    node_steps: int
    support: Support
    flow: Flow = SOURCE_TO_TARGET

    def __post_init__(self) -> None:
        coordinate = self.coordinate  # refuses an unknown name
        check_whole("steps", self.steps, 0)
        check_choice("flow", self.flow, get_args(Flow))
        check_whole("node_steps", self.node_steps, 0)
        hops = isinstance(self.support, int) and not isinstance(self.support, bool) and self.support >= 0
        require(
            self.support in ("global", "sparse_global") or hops,
            f"The support is {self.support!r}: choose 'global', 'sparse_global' or a number of hops.",
        )
        require(
            self.support != "sparse_global" or coordinate.sparse is not None,
            f"The sparse global support needs coordinates that are zero between far nodes; {self.name!r} has "
            f"none: choose support 'global' or a number of hops, or encoding 'rrwp' in a network without attention.",
        )

    @property
    def coordinate(self) -> PseudoCoordinate:
        return COORDINATES[self.name]

    @property
    def source(self) -> str:
        """What a transform of `ckgconv.pe` writes when it precomputes this encoding."""
        return f"{self.coordinate.source.format(name=self.name, steps=self.steps)} {self.flow}"

    @property
    def description(self) -> str:
        """Coordinates and support in words; two encodings share them only if they compute the same numbers."""
        return f"{self.source} with support {self.support}"

    @property
    def has_fixed_shapes(self) -> bool:
        """Whether pairs and coordinates of a batch can be computed in fixed shapes, without looking at the graphs."""
        return self.coordinate.walk_powers and self.support == "global"

    @property
    def keeps_edges(self) -> bool:
        """Whether every edge lies inside the support."""
        return self.support != 0

    @property
    def stores_near_pairs(self) -> bool:
        """Whether only pairs of near nodes are stored."""
        return self.support != "global"

    @property
    def reach(self) -> int:
        """Hops beyond which no pair is stored, where only some are."""
        return self.support if isinstance(self.support, int) else max(self.steps, 1)

    @property
    def channels(self) -> int:
        """C, the number of coordinate channels of a pair."""
        return self.coordinate.channels(self.steps)

    @property
    def node_channels(self) -> int:
        """K, the number of channels of the node part."""
        return self.coordinate.node_channels(self.steps, self.node_steps)

    def coordinates(self, graphs: PackedGraphs, dtype: torch.dtype, chosen: Tensor | None = None) -> Coordinates:
        """P on all pairs, on those that differ from zero, or on those of the support and the diagonal.

        `chosen` [2, S]: a support of the user's own, in place of the encoding's.
        """
        coordinate, some = self.coordinate, self._prefers_needed_pairs(graphs, chosen)
        if coordinate.sparse is not None and some:
            return coordinate.sparse(graphs, self.steps, dtype)
        if coordinate.at_pairs is not None and some and coordinate.computes_some_pairs(self.steps):
            receiver, sender = self._needed(graphs, chosen)
            values = coordinate.at_pairs(graphs, self.steps, receiver, sender, dtype)
            return Coordinates(receiver, sender, values, complete=False, zero_elsewhere=False)
        check_memory(graphs, self.channels, dtype, coordinate.cell_bytes(dtype), self._way_out())
        if coordinate.padded_at is None or (chosen is None and self.support == "global") or some:
            return all_pairs_by_size(graphs, lambda part: coordinate.values(part, self.steps, dtype))
        receiver, sender = self._needed(graphs, chosen)
        padded_at = coordinate.padded_at
        values = at_pairs_by_size(graphs, receiver, sender, lambda part, i, j: padded_at(part, self.steps, i, j, dtype))
        within = self.reach if chosen is None else None
        return Coordinates(receiver, sender, values, complete=False, zero_elsewhere=False, within=within)

    def node_part(self, graphs: PackedGraphs, coordinates: Coordinates, dtype: torch.dtype) -> Tensor:
        """[N, K] return probabilities, or what the coordinate has in their place."""
        if self.coordinate.node_values is not None:
            return self.coordinate.node_values(graphs, self.steps, dtype)
        if self.coordinate.diagonal_skips is not None:
            return self.coordinate.diagonal(coordinates)
        return nodes_by_size(graphs, lambda part: return_probabilities(part, self.node_steps, dtype))

    def pairs(self, graphs: PackedGraphs, coordinates: Coordinates, dtype: torch.dtype) -> Pairs:
        """The support, with the coordinates that `coordinates` returned."""
        if isinstance(self.support, int):
            return hop_support(graphs, coordinates, self.support, dtype)
        return global_support(graphs, coordinates, dtype)

    def stores_all_pairs(self, data: Data) -> bool:
        """Whether the support of `data` is every pair."""
        return self.support == "global" and getattr(data, "support_index", None) is None

    @property
    def fewer_pairs(self) -> str:
        """Advice for a step whose pairs do not fit into memory."""
        if self.support == "global":
            same = "support 'sparse_global' (the same numbers) or " if self.coordinate.sparse is not None else ""
            return f"choose {same}a number of hops as support"
        return "choose fewer steps" if self.support == "sparse_global" else "choose fewer hops"

    def _way_out(self) -> str:
        """Advice for a data set whose pairs do not all fit into memory."""
        if self.coordinate.computes_some_pairs(self.steps):
            return "choose a number of hops as support, or encoding 'rrwp' with support 'sparse_global'"
        if self.coordinate.sparse is None:
            return "choose encoding 'rrwp' with support 'sparse_global' or a number of hops"
        if self.support == "global":
            return "choose support 'sparse_global' (the same numbers) or a number of hops"
        return "choose fewer steps"

    def _prefers_needed_pairs(self, graphs: PackedGraphs, chosen: Tensor | None) -> bool:
        """Whether computing only the pairs needed costs less than computing all."""
        if isinstance(self.support, int) or chosen is not None:
            return graphs.largest > LARGEST_PADDED
        return self.support == "sparse_global"

    def _needed(self, graphs: PackedGraphs, chosen: Tensor | None) -> tuple[Tensor, Tensor]:
        """Receivers and senders, sorted, of the support and of the diagonal, which the node part may read."""
        if chosen is None:
            return pairs_within(graphs, self.reach)
        receiver, sender = chosen_pairs(graphs, chosen, self.flow)
        node = torch.arange(graphs.num_nodes, device=receiver.device)
        keys = torch.unique(torch.cat([receiver, node]) * graphs.num_nodes + torch.cat([sender, node]))
        return from_keys(keys, graphs.num_nodes)
