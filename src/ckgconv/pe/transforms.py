"""Pseudo-coordinates as PyG transforms, to compute them once per data set instead of once per batch.

Each writes tensors whose names PyG's `Batch` concatenates and renumbers by itself:

    pair_index [2, P]      sources above targets, as `edge_index`
    pair_encoding [P, C]   coordinates of each pair ([P] int64 for SPD)
    node_encoding [N, K]   return probabilities, the node part
    pair_source            the encoding and its flow, so that a network can refuse any other

A model uses them where they are present instead of computing its own. Each takes `flow`, which end of an edge receives,
as the model that reads the result.
"""

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from ckgconv.graphs import SOURCE_TO_TARGET, Coordinates, Flow, PackedGraphs, index_of, pack
from ckgconv.pe.distances import rd, spd
from ckgconv.pe.heat import HEAT, heat
from ckgconv.pe.rrwp import Counting, diagonal, rrwp, sparse_rrwp
from ckgconv.pe.rwse import pair_rwse, return_probabilities


class AddRRWP(BaseTransform):  # type: ignore[misc]
    """Relative random-walk probabilities of every pair, and their diagonal."""

    def __init__(self, steps: int, counting: Counting = "published", flow: Flow = SOURCE_TO_TARGET) -> None:
        self.steps = steps
        self.counting = counting
        self.flow = flow

    def encode(self, graphs: PackedGraphs) -> Coordinates:
        return rrwp(graphs, self.steps, self.counting)

    def forward(self, data: Data) -> Data:
        coordinates = self.encode(packed(data, self.flow))
        data.node_encoding = diagonal(coordinates, self.counting)
        return write(data, coordinates, f"rrwp {self.steps} {self.counting}", self.flow)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(steps={self.steps}, counting={self.counting!r})"


class AddSparseRRWP(AddRRWP):
    """The same, storing only the pairs that a walk reaches."""

    def encode(self, graphs: PackedGraphs) -> Coordinates:
        return sparse_rrwp(graphs, self.steps, self.counting)


class OfSteps(BaseTransform):  # type: ignore[misc]
    """Base of transforms that have steps, or times, and nothing else."""

    def __init__(self, steps: int, flow: Flow = SOURCE_TO_TARGET) -> None:
        self.steps = steps
        self.flow = flow

    def __repr__(self) -> str:
        return f"{type(self).__name__}(steps={self.steps})"


class AddHeat(OfSteps):
    """Heat kernel of every pair at `steps` times, and its diagonal."""

    def forward(self, data: Data) -> Data:
        coordinates = heat(packed(data, self.flow), self.steps)
        data.node_encoding = HEAT.diagonal(coordinates)
        return write(data, coordinates, f"heat {self.steps}", self.flow)


class AddRWSE(OfSteps):
    """Return probabilities of each node; the node part that goes with SPD, RD and pair-RWSE."""

    def forward(self, data: Data) -> Data:
        data.node_encoding = return_probabilities(packed(data, self.flow), self.steps)
        return data


class AddPairRWSE(OfSteps):
    """Return probabilities of both nodes of a pair."""

    def forward(self, data: Data) -> Data:
        return write(data, pair_rwse(packed(data, self.flow), self.steps), f"pair_rwse {self.steps}", self.flow)


class AddSPD(BaseTransform):  # type: ignore[misc]
    """Shortest-path distance in hops."""

    def __init__(self, max_distance: int, flow: Flow = SOURCE_TO_TARGET) -> None:
        self.max_distance = max_distance
        self.flow = flow

    def forward(self, data: Data) -> Data:
        return write(data, spd(packed(data, self.flow), self.max_distance), f"spd {self.max_distance}", self.flow)

    def __repr__(self) -> str:
        return f"AddSPD(max_distance={self.max_distance})"


class AddRD(BaseTransform):  # type: ignore[misc]
    """Resistance distance."""

    def __init__(self, flow: Flow = SOURCE_TO_TARGET) -> None:
        self.flow = flow

    def forward(self, data: Data) -> Data:
        return write(data, rd(packed(data, self.flow)), "rd", self.flow)

    def __repr__(self) -> str:
        return "AddRD()"


def packed(data: Data, flow: Flow) -> PackedGraphs:
    """The graphs of a PyG `Data` or `Batch`, checked."""
    batch = getattr(data, "batch", None)
    return pack(data.edge_index, batch, getattr(data, "edge_weight", None), data.num_nodes, flow)


def write(data: Data, coordinates: Coordinates, source: str, flow: Flow) -> Data:
    """`data` with the coordinates, and with what names them."""
    data.pair_index = index_of(coordinates.receiver, coordinates.sender, flow)
    data.pair_encoding = coordinates.values
    data.pair_source = f"{source} {flow}"
    return data
