"""ψ of a single layer: from the coordinates of a batch to kernel values, by the MLP (Eqs. 5 and 6) or a module given.

A zero row stands for all pairs of a graph that are not stored (`graphs.Pairs`).
"""

import torch
from torch import Tensor, nn

from ckgconv.checks import check_shape, require
from ckgconv.graphs import GraphBatch
from ckgconv.nn.coordinates import check_injection, rescaled
from ckgconv.nn.degree import DegreeInjection
from ckgconv.nn.initialise import reset_every
from ckgconv.nn.kernel import Kernel, KernelValues, split_rows
from ckgconv.nn.kernel_memory import values_per_kind
from ckgconv.nn.kinds import kinds_of_pairs
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.stem import Edges, PairStem
from ckgconv.nn.step_memory import ChecksStepMemory, RowSize, kinds_row_size, least_row_size, row_size
from ckgconv.ops.precision import HALVES, without_autocast
from ckgconv.pairs import Encoding

BATCH_NORMS = (nn.modules.batchnorm._BatchNorm, WeightedBatchNorm)


class MLPKernel(ChecksStepMemory, nn.Module):
    """Stem and MLP kernel of a single layer: `GraphBatch` → `KernelValues`."""

    def __init__(self, encoding: Encoding, stem: PairStem, mlp: Kernel, edge_dim: int | None) -> None:
        super().__init__()
        self.encoding = encoding
        self.edge_encoder = None if edge_dim is None else nn.Linear(edge_dim, stem.norm.channels)
        self.stem = stem
        self.mlp = mlp

    def row_size(self, channels: int) -> RowSize:
        """Values of a step for each pair with C coordinate channels."""
        if self.mlp.treats_equal_pairs_equally:
            return kinds_row_size(channels)
        if self.mlp.treats_equal_rows_equally:
            return least_row_size(self.mlp.channels, channels)
        return row_size(self.mlp.values_per_row(), self.stem.norm.channels, channels)

    def step_bytes(self, rows: int) -> int:
        """Memory of a step on this many kinds of pairs."""
        values = row_size(values_per_kind(self.mlp), self.stem.norm.channels, self.encoding.channels)
        return values.step_bytes(rows, 0, self.stem.norm.scale.dtype)

    def reset_parameters(self) -> None:
        if self.edge_encoder is not None:
            self.edge_encoder.reset_parameters()
        self.stem.reset_parameters()
        self.mlp.reset_parameters()

    def forward(self, batch: GraphBatch) -> KernelValues:
        kinds = None
        if self.mlp.treats_equal_rows_equally:
            kinds = kinds_of_pairs(batch, self.stem.encoder.reads(batch.pairs, batch.degree))
        if kinds is not None:
            batch = kinds.batch
            self.check_step(batch.pairs.num_pairs, batch.degree.device)
        with without_autocast(batch.degree):
            pair_features = self.stem(batch.pairs, batch.degree, self._edges(batch))
        (values,) = self.mlp(pair_features, batch.pairs, kinds)
        return values

    def _edges(self, batch: GraphBatch) -> Edges | None:
        if self.edge_encoder is None or batch.edge_features is None:
            return None
        attributes = batch.edge_features.to(self.edge_encoder.weight.dtype)
        return Edges(batch.edge_row, self.edge_encoder(attributes))


class GivenKernel(nn.Module):
    """A user's module on the rescaled coordinates, edge attributes concatenated: `GraphBatch` → `KernelValues`."""

    def __init__(self, module: nn.Module, encoding: Encoding, channels: int, inject_degree: bool) -> None:
        super().__init__()
        check_injection(encoding, inject_degree)
        self.channels = channels
        self.couples_rows = any(isinstance(part, BATCH_NORMS) for part in module.modules())
        if encoding.support == "sparse_global":
            self._check_row_by_row()
        self.rescales = encoding.coordinate.rescaled
        self.injection = DegreeInjection(encoding.channels) if inject_degree else None
        self.module = module

    def row_size(self, channels: int) -> RowSize:
        """Values of a step for each pair with C coordinate channels; what the module keeps is not counted."""
        return least_row_size(self.channels, channels)

    def reset_parameters(self) -> None:
        if self.injection is not None:
            self.injection.reset_parameters()
        reset_every(self.module)

    def forward(self, batch: GraphBatch) -> KernelValues:
        pairs = batch.pairs
        if pairs.has_zero_rows:
            self._check_row_by_row()
        coordinates = rescaled(pairs) if self.rescales else pairs.coordinates.to(batch.degree.dtype)
        coordinates = coordinates.view(coordinates.shape[0], -1)
        if self.injection is not None:
            coordinates = self.injection(coordinates, batch.degree, pairs)
        if batch.edge_features is not None:
            attributes = coordinates.new_zeros(coordinates.shape[0], batch.edge_features.shape[1])
            attributes = attributes.index_add(0, batch.edge_row, batch.edge_features)
            coordinates = torch.cat([coordinates, attributes], dim=-1)
        psi = self.module(self._in_its_precision(coordinates))
        rows = coordinates.shape[0]
        check_shape("The kernel's result", psi, (rows, self.channels), "return one row per pair, kernel_channels wide.")
        return split_rows(psi, pairs)

    def _in_its_precision(self, coordinates: Tensor) -> Tensor:
        """Coordinates are at least float32: rounded where the module has 16-bit parameters."""
        parameter = next(self.module.parameters(), None)
        halves = parameter is not None and parameter.dtype in HALVES
        return coordinates.to(parameter.dtype) if parameter is not None and halves else coordinates

    def _check_row_by_row(self) -> None:
        require(
            not self.couples_rows,
            "The given kernel uses batch statistics, which a zero row of a sparse global support would distort: "
            "use support 'global', or a kernel that treats each pair separately.",
        )
