"""The continuous kernel ψ, for all layers of a network at once (Eqs. 5 and 6).

    MLP(x) = x + FC∘GELU∘Norm∘FC∘GELU∘Norm(x)           ψ(P) = FC∘Norm∘MLP∘…∘MLP(P)

ψ does not depend on node features. So the kernels of L layers are one grouped MLP over the pairs of a batch, evaluated
before the first block. Here each layer is evaluated by itself; the passes of `backends` compute the statistics of the
shared input once for all layers.

A zero row stands for all pairs of a graph that are not stored (sparse global support, see `graphs.Pairs`).

Legend: L groups (layers), R rows (P stored pairs, then zero rows), D width, C channels of ψ, N nodes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_choice, check_probability, require
from ckgconv.graphs import Pairs
from ckgconv.nn.constraint import Constraint, constrained
from ckgconv.nn.grouped_linear import GroupedLinear
from ckgconv.nn.initialise import reset_every
from ckgconv.nn.kernel_memory import values_per_row
from ckgconv.nn.kernel_operation import in_one_operation
from ckgconv.nn.kinds import Kinds
from ckgconv.nn.norm import NormName, make_norm
from ckgconv.ops.distinct import Distinct
from ckgconv.ops.dropout import dropout
from ckgconv.ops.pool import spread


@dataclass(frozen=True)
class KernelValues:
    """ψ of one layer on the pairs of a batch."""

    stored: Tensor  # [P, C] of every pair, or [U, C] of every kind of pairs
    background: Tensor | None  # [N, C] coefficient of the pairs not stored, None where all are stored
    rows: Distinct | None = None  # which kind each pair is of; None where `stored` has a row for every pair


class Kernel(nn.Module):
    """L kernels of `blocks` residual MLP blocks; 0 blocks is a linear kernel.

    Dropout: `mlp_dropout` ends each block before the residual sum, `kernel_dropout` acts on ψ itself. A zero row
    stands for many pairs with independent masks, which one row cannot represent: it has no dropout, the expectation.

    Args:
        width: D, channels of the pair features and of the blocks.
        channels: C, channels of ψ.
        layers: L.
        blocks: residual MLP blocks.
        norm: "batch", "layer", "rms" or "none".
        constraint: "none" (any sign), "softmax" over the support (sum aggregation) or "softplus" (mean aggregation).

    Shapes: pair features [R, D] → L times `KernelValues`.
    """

    blocks: Sequence["KernelBlock"]

    def __init__(
        self,
        width: int,
        channels: int,
        layers: int = 1,
        blocks: int = 2,
        norm: NormName = "batch",
        mlp_dropout: float = 0.0,
        kernel_dropout: float = 0.0,
        constraint: Constraint = "none",
    ) -> None:
        super().__init__()
        check_choice("constraint", constraint, get_args(Constraint))
        require(blocks >= 0, f"The kernel has {blocks} blocks: give 0 or more.")
        check_probability("kernel_dropout", kernel_dropout)
        check_probability("mlp_dropout", mlp_dropout)
        self.layers = layers
        self.channels = channels
        self.kernel_dropout = kernel_dropout
        self.constraint = constraint
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            KernelBlock(width, layers, norm, mlp_dropout) for _ in range(blocks)
        )
        self.norm = make_norm(norm, width, layers)
        self.linear = GroupedLinear(width, channels, layers)

    def reset_parameters(self) -> None:
        for block in self.blocks:
            block.reset_parameters()
        self.norm.reset_parameters()
        self.linear.reset_parameters()

    def forward(self, pair_features: Tensor, pairs: Pairs, kinds: Kinds | None = None) -> Iterable[KernelValues]:
        """`kinds`: features and pairs hold one pair of each kind, and the result stands for all pairs."""
        return tuple(self.of_layer(pair_features, pairs, layer, kinds) for layer in range(self.layers))

    def of_layer(self, pair_features: Tensor, pairs: Pairs, layer: int, kinds: Kinds | None = None) -> KernelValues:
        """ψ of one layer."""
        psi = self.unconstrained(pair_features, pairs, layer)
        if kinds is None:
            return self.constrain(psi, pairs)
        if self.treats_equal_pairs_equally and not kinds.pairs.has_zero_rows:
            return replace(self.constrain(psi, pairs), rows=kinds.rows)
        return self.constrain(kinds.to_all_pairs(psi), kinds.pairs)

    def values_per_row(self) -> int:
        """κ of `step_memory`."""
        return values_per_row(self)

    def unconstrained(self, x: Tensor, pairs: Pairs, layer: int) -> Tensor:
        """ψ [R, C] of one layer on pair features [R, D], before constraint and dropout."""
        psi = in_one_operation(self, x, pairs.row_weight, layer)
        if psi is not None:
            return psi
        for block in self.blocks:
            x = x + block(x, pairs, layer)
        return self.linear(self.norm(x, pairs.row_weight, layer), layer)

    def stages(self) -> list[tuple[Any, GroupedLinear]]:
        """Norm and linear map of each stage, first to last: two stages per block, and the one that computes ψ."""
        stages: list[tuple[Any, GroupedLinear]] = []
        for block in self.blocks:
            stages += [(block.norm_in, block.linear_in), (block.norm_out, block.linear_out)]
        return [*stages, (self.norm, self.linear)]

    def constrain(self, psi: Tensor, pairs: Pairs) -> KernelValues:
        """ψ [R, C] under the constraint, with dropout on stored pairs."""
        values = split_rows(psi, pairs)
        stored, background = constrained(self.constraint, values.stored, values.background, pairs)
        return KernelValues(dropout(stored, self.kernel_dropout, self.training), background)

    @property
    def treats_equal_rows_equally(self) -> bool:
        """Whether equal pair features have equal ψ: dropout inside the blocks draws a mask for every row."""
        return not (self.training and any(block.dropout for block in self.blocks))

    @property
    def treats_equal_pairs_equally(self) -> bool:
        """Whether the constraint keeps them equal too: a softmax is over the support, dropout of ψ over all pairs."""
        alike = self.constraint != "softmax" and not (self.training and self.kernel_dropout)
        return alike and self.treats_equal_rows_equally

    def extra_repr(self) -> str:
        return f"layers={self.layers}, kernel_dropout={self.kernel_dropout}, constraint={self.constraint!r}"


class GivenKernels(nn.Module):
    """One custom module per layer, each from pair features [R, D] to [R, C], instead of a `Kernel`.

    A module cannot tell zero rows from others: with a sparse global support it must treat each row separately.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(modules)

    def reset_parameters(self) -> None:
        reset_every(self.layers)

    def values_per_row(self) -> int:
        """κ of `step_memory`: not counted, since it depends on the modules."""
        return 0

    def forward(self, pair_features: Tensor, pairs: Pairs) -> tuple[KernelValues, ...]:
        return tuple(self.of_layer(pair_features, pairs, layer) for layer in range(len(self.layers)))

    def of_layer(self, pair_features: Tensor, pairs: Pairs, layer: int) -> KernelValues:
        """ψ of one layer."""
        return split_rows(self.layers[layer](pair_features), pairs)


class KernelBlock(nn.Module):
    """FC∘GELU∘Norm∘FC∘GELU∘Norm of one layer: a block without its residual sum, [R, D] → [R, D]."""

    def __init__(self, width: int, layers: int, norm: NormName, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm_in = make_norm(norm, width, layers)
        self.linear_in = GroupedLinear(width, width, layers)
        self.norm_out = make_norm(norm, width, layers)
        self.linear_out = GroupedLinear(width, width, layers)

    def reset_parameters(self) -> None:
        for module in (self.norm_in, self.linear_in, self.norm_out, self.linear_out):
            module.reset_parameters()

    def forward(self, x: Tensor, pairs: Pairs, layer: int) -> Tensor:
        hidden = self.linear_in(F.gelu(self.norm_in(x, pairs.row_weight, layer)), layer)
        hidden = self.linear_out(F.gelu(self.norm_out(hidden, pairs.row_weight, layer)), layer)
        return self._drop(hidden, pairs)

    def _drop(self, hidden: Tensor, pairs: Pairs) -> Tensor:
        """Dropout on the rows of stored pairs; zero rows keep their expectation."""
        if not pairs.has_zero_rows:
            return dropout(hidden, self.dropout, self.training)
        stored, zero = hidden[: pairs.num_pairs], hidden[pairs.num_pairs :]
        return torch.cat([dropout(stored, self.dropout, self.training), zero])

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


def split_rows(psi: Tensor, pairs: Pairs) -> KernelValues:
    """ψ [R, C] of stored pairs and, where there are zero rows, of the pairs not stored."""
    if not pairs.has_zero_rows:
        return KernelValues(psi, None)
    stored, zero = psi[: pairs.num_pairs], psi[pairs.num_pairs :]
    background = zero[pairs.node_graph] if pairs.graph_ptr is None else spread(zero, pairs.node_graph, pairs.graph_ptr)
    return KernelValues(stored, background)
