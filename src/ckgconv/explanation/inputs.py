"""The prediction for one molecule as a function of its embedded atoms and pairs, to be masked and differentiated.

    f(h⁰, e⁰)                     h⁰ [n, D] atoms and e⁰ [R, D] pairs, as the first layer reads them
    x(m) = x₀ + m (x - x₀)        a row of either with presence m in [0, 1], x₀ its baseline

CKGCN and hybrid networks are cut after their stems, whose last step is a batch norm: the baseline is its shift β, to
which it maps the mean row of the training data. So the baseline is a molecule of as many atoms, each the average atom,
each pair the average pair; degrees of the blocks' scalers stay. Other models are cut after the embedding of atom and
bond attributes, and their baseline is 0, an atom without attributes; what they know of the structure stays.

A row belongs to what it describes: an atom, a bond, or half to either atom of a pair that is not bonded. Where the head
reads features of the whole molecule, all descriptors together are one unit more, and each of the user's own columns is
one; their baseline is their training mean.

Legend: k copies of the molecule, n atoms, b bonds, R rows of pairs or directed edges, D width, C features of the whole
molecule, U = n + b units and those of the features.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from ckgconv.backends import plain
from ckgconv.checks import InputError, require
from ckgconv.data import PackedDataset
from ckgconv.engine.run import Run
from ckgconv.graphs import GraphBatch
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.kernel_network import KernelNetwork
from ckgconv.ops.precision import exact_products

# Of a batch of copies of a molecule.
MOST_ROWS = 2**14
Hook = Callable[[nn.Module, Any, Tensor], Tensor | None]


@dataclass(frozen=True)
class Part:
    """Rows of one input of the network: what they are, what they would be at the baseline, and whose they are."""

    module: nn.Module  # whose output they replace
    rows: Tensor  # [R, D]
    baseline: Tensor  # [D]
    first: Tensor  # [R] int64 atom i; -1: all atoms
    second: Tensor  # [R] int64 atom j, the same atom where the row is that of one
    bond: Tensor  # [R] int64 bond; -1: none
    stored: int  # rows before the zero row, which stands for all pairs that are not stored

    def hook(self, rows: Tensor) -> RemovableHandle:
        """Let the network read the rows [·, D] of a batch."""
        return self.module.register_forward_hook(_replacing(rows))

    def presence(self, units: Tensor, atoms: int) -> Tensor:
        """[k, R, 1] of each row, from that of atoms and bonds [k, U]: a pair is there where both its ends are."""
        present = torch.cat([units, units[:, :atoms].mean(1, keepdim=True), torch.ones_like(units[:, :1])], dim=1)
        everything = units.shape[1]
        first, second = (end.where(end >= 0, everything) for end in (self.first, self.second))
        bond = (self.bond + atoms).where(self.bond >= 0, everything + 1)
        same = first == second
        return (present[:, first] * present[:, second].where(~same, 1.0) * present[:, bond]).unsqueeze(-1)

    def by_unit(self, values: Tensor, atoms: int, units: int) -> Tensor:
        """[U] sums of values [R, D] of rows: to the bond, or half to each end; those of all atoms in equal parts."""
        values = values.sum(-1)
        owner = (self.bond + atoms).where(self.bond >= 0, self.first)
        other = (self.bond + atoms).where(self.bond >= 0, self.second)
        shared = owner < 0
        own = values.where(~shared, 0.0) / 2
        summed = values.new_zeros(units).index_add(0, owner.clamp(min=0), own).index_add(0, other.clamp(min=0), own)
        summed[:atoms] += values.where(shared, 0.0).sum() / atoms
        return summed


@dataclass(frozen=True)
class FeaturePart(Part):
    """What the head reads of the whole molecule, one row: the deviations that a module joins to the pooled atoms.

    The way from the baseline leads past the limit of these deviations: it is a kink, which integrals are slow to meet.
    """

    unit: Tensor  # [C] int64: the unit of each feature, from 0

    def hook(self, rows: Tensor) -> RemovableHandle:
        return self.module.register_forward_hook(
            lambda module, given, output: torch.cat([given[0], rows.to(output.dtype)], dim=-1)
        )

    def presence(self, units: Tensor, atoms: int) -> Tensor:
        """[k, 1, C]."""
        return units[:, self.unit].unsqueeze(1)

    def by_unit(self, values: Tensor, atoms: int, units: int) -> Tensor:
        """[U] of the one row [1, C]."""
        return values.new_zeros(units).index_add(0, self.unit, values[0])


class Inputs:
    """f of one molecule, for one output of a run's network.

    Args:
        network: the plain network of the run (`network_of`).
        run: whose scale brings predictions into the units of the data.
        molecule: a data set of one molecule; its edges are two per bond, one after the other.
        target: which output.
    """

    def __init__(self, network: GraphModel, run: Run, molecule: PackedDataset, target: int) -> None:
        self.network, self.run, self.target = network, run, target
        self.molecule = molecule.to(run.learner.fabric.device)
        self.atoms, self.bonds = int(self.molecule.node_ptr[1]), int(self.molecule.edge_ptr[1]) // 2
        self._batches: dict[int, GraphBatch] = {}
        network.check_all_pairs(self.molecule.batch(self.molecule.node_ptr.new_zeros(1)))
        batch = self.batch(1)
        features = 0 if network.graph_join is None else len(network.graph_join.mean)
        self.columns = min(features, len(run.recipe.data.features))
        self.has_descriptors = features > self.columns
        self.parts = [*self._parts(batch), *self._features(batch)]

    @property
    def units(self) -> int:
        """U: atoms, bonds, descriptors where it has any, then the user's own columns."""
        return self.atoms + self.bonds + int(self.has_descriptors) + self.columns

    @property
    def copies(self) -> int:
        """How many copies of the molecule are computed at once."""
        return max(1, MOST_ROWS // max(1, sum(len(part.rows) for part in self.parts)))

    def masked(self, units: Tensor) -> list[Tensor]:
        """[k, R, D] of each part, for presences of atoms and bonds [k, U]."""
        return [part.baseline + part.presence(units, self.atoms) * (part.rows - part.baseline) for part in self.parts]

    def blended(self, share: Tensor) -> list[Tensor]:
        """[k, R, D] of each part at the shares [k] of the way from the baseline to the molecule."""
        share = share.view(-1, 1, 1)
        return [part.baseline + share * (part.rows - part.baseline) for part in self.parts]

    def value(self, given: list[Tensor]) -> Tensor:
        """f [k] at the given rows [k, R, D] of each part, in the units of the data, or as a logit."""
        copies = len(given[0])
        batch = self.batch(copies)
        handles = [part.hook(in_batch(rows, part.stored)) for part, rows in zip(self.parts, given, strict=True)]
        try:
            with exact_products():
                return self.run.learner.in_units(self.network(batch))[:, self.target]
        finally:
            for handle in handles:
                handle.remove()

    @torch.no_grad()
    def value_of_units(self, units: Tensor) -> Tensor:
        """f [k] for presences of atoms and bonds [k, U], in batches."""
        return torch.cat([self.value(self.masked(chunk)) for chunk in units.split(self.copies)])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """f at the baseline and f of the molecule."""
        none, all_units = torch.zeros(1, self.units), torch.ones(1, self.units)
        baseline, prediction = self.value_of_units(torch.cat([none, all_units]).to(self.parts[0].rows)).tolist()
        return baseline, prediction

    def batch(self, copies: int) -> GraphBatch:
        """The molecule that many times, prepared once."""
        if copies not in self._batches:
            data = self.molecule.batch(self.molecule.node_ptr.new_zeros(copies))
            dtype = self.network.dtype
            data = data.apply(lambda value: value.to(dtype) if value.is_floating_point() else value)
            self._batches[copies] = self.network.prepare(data)
        return self._batches[copies]

    def _parts(self, batch: GraphBatch) -> list[Part]:
        network, device = self.network, batch.degree.device
        atoms = torch.arange(self.atoms, device=device)
        bond = self._bond_of_pair(batch)
        pairs = batch.pairs
        if isinstance(network, KernelNetwork):
            nodes, rows = self._outputs([network.node_stem, network.pair_stem], batch)
            everyone = rows.shape[0] - pairs.num_pairs
            ends = [F.pad(end, (0, everyone), value=-1) for end in (pairs.receiver, pairs.sender)]
            bond = F.pad(bond, (0, everyone), value=-1)
            shift = (network.node_stem.norm.shift[0], network.pair_stem.norm.shift[0])
            return [
                Part(network.node_stem, nodes, shift[0], atoms, atoms, torch.full_like(atoms, -1), self.atoms),
                Part(network.pair_stem, rows, shift[1], ends[0], ends[1], bond, pairs.num_pairs),
            ]
        modules = [each for each in (network.node_encoder, network.edge_encoder) if each is not None]
        outputs = self._outputs(modules, batch)
        zero = outputs[0].new_zeros(outputs[0].shape[1])
        parts = [Part(modules[0], outputs[0], zero, atoms, atoms, torch.full_like(atoms, -1), self.atoms)]
        for module, rows in zip(modules[1:], outputs[1:], strict=True):
            ends = [pairs.receiver[batch.edge_row], pairs.sender[batch.edge_row]]
            zero = rows.new_zeros(rows.shape[1])
            parts.append(Part(module, rows, zero, ends[0], ends[1], bond[batch.edge_row], len(rows)))
        return parts

    def _features(self, batch: GraphBatch) -> list[Part]:
        join = self.network.graph_join
        if join is None or batch.graph_features is None:
            return []
        rows = join.standardised(batch.graph_features)
        none = torch.full((1,), -1, device=rows.device)
        # Descriptors come first, and share one unit.
        place = torch.arange(rows.shape[1], device=rows.device) - (rows.shape[1] - self.columns)
        unit = self.atoms + self.bonds + (place + int(self.has_descriptors)).clamp(min=0)
        return [FeaturePart(join, rows, torch.zeros_like(join.mean), none, none, none, 1, unit)]

    @torch.no_grad()
    def _outputs(self, modules: Sequence[nn.Module], batch: GraphBatch) -> list[Tensor]:
        """What modules return for a batch."""
        found: dict[int, Tensor] = {}
        handles = [each.register_forward_hook(_keeping(found, place)) for place, each in enumerate(modules)]
        try:
            with exact_products():
                self.network(batch)
        finally:
            for handle in handles:
                handle.remove()
        if len(found) < len(modules):
            raise InputError(
                f"The network, a {type(self.network).__name__}, does not embed atoms and bonds by its own encoders, so "
                f"its predictions cannot be explained: give a run of another model."
            )
        return [found[place] for place in range(len(modules))]

    def _bond_of_pair(self, batch: GraphBatch) -> Tensor:
        """[P] the bond of each stored pair, -1 where there is none."""
        pairs = batch.pairs
        number = pairs.receiver * self.atoms + pairs.sender
        table = torch.full((self.atoms**2,), -1, device=number.device)
        edge = self.molecule.edge_index.long()
        bonds = torch.arange(edge.shape[1], device=number.device) // 2
        table[edge[0] * self.atoms + edge[1]] = bonds
        return table[number]


def network_of(run: Run) -> GraphModel:
    """A copy of the run's network in evaluation mode, without the passes of a device, whose shortcuts skip modules."""
    require(
        not run.model.predicts_nodes,
        "The run predicts each node of a graph, so there is no prediction for a molecule to explain: give another run.",
    )
    return plain(deepcopy(run.model)).eval().requires_grad_(False)


def in_batch(rows: Tensor, stored: int) -> Tensor:
    """Rows [k, R, D] in the order of a batch: those stored of all copies, then the zero rows of all copies."""
    return torch.cat([rows[:, :stored].flatten(0, 1), rows[:, stored:].flatten(0, 1)])


def _replacing(rows: Tensor) -> Hook:
    return lambda module, given, output: rows.to(output.dtype)


def _keeping(found: dict[int, Tensor], place: int) -> Hook:
    def keep(module: nn.Module, given: Any, output: Tensor) -> None:
        found[place] = output.detach()

    return keep
