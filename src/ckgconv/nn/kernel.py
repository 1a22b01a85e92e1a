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
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_choice, check_probability, require
from ckgconv.graphs import Pairs
from ckgconv.nn.hooks import has_hooks
from ckgconv.nn.initialise import linear_bias, reset_every, small_normal
from ckgconv.nn.kinds import Kinds
from ckgconv.nn.norm import NoNorm, NormName, WeightedBatchNorm, make_norm, of_group
from ckgconv.ops.batch_norm import track
from ckgconv.ops.distinct import Distinct
from ckgconv.ops.dropout import dropout
from ckgconv.ops.kernel_mlp import Stage, applies, kernel_mlp
from ckgconv.ops.pool import spread
from ckgconv.ops.softmax import sparse_global_softmax, summing_softmax

Constraint = Literal["none", "softmax", "softplus"]


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
        return self.constrain(kinds.spread(psi), kinds.pairs)

    def values_per_row(self) -> int:
        """κ of `step_memory`: inputs of norms, activations and linear maps, ψ, masks; without gradients only ψ."""
        if not torch.is_grad_enabled():
            return self.layers * self.channels
        stages, width = 2 * len(self.blocks), self.linear.weight.shape[-1]
        inputs = 3 * stages + 1 if not isinstance(self.norm, NoNorm) else 2 * stages
        return self.layers * (inputs * width + self.channels + self.mask_values())

    def values_per_kind(self) -> int:
        """The same for a kind of pairs: `ops.kernel_mlp` keeps only input and activation of each stage, and ψ."""
        if not (torch.is_grad_enabled() and self.training and self._is_one_operation):
            return self.values_per_row()
        return self.layers * (4 * len(self.blocks) * self.linear.weight.shape[-1] + self.channels)

    def mask_values(self) -> int:
        """The masks of a layer, of at least a byte per entry, counted in values of four bytes."""
        masked = self.linear.weight.shape[-1] * sum(block.dropout > 0 for block in self.blocks)
        masked += self.channels * (self.kernel_dropout > 0)
        return masked // 4 if self.training else 0

    def unconstrained(self, x: Tensor, pairs: Pairs, layer: int) -> Tensor:
        """ψ [R, C] of one layer on pair features [R, D], before constraint and dropout."""
        if self.training and pairs.row_weight is not None and self._is_one_operation:
            stages = [
                Stage(*(of_group(field, layer) for field in (norm.scale, norm.shift, linear.weight, linear.bias)))
                for norm, linear in self.stages()
            ]
            if applies(x, pairs.row_weight, stages):
                return self._in_one_operation(x, pairs.row_weight, stages, layer)
        for block in self.blocks:
            x = x + block(x, pairs, layer)
        return self.linear(self.norm(x, pairs.row_weight, layer), layer)

    def stages(self) -> list[tuple[Any, "GroupedLinear"]]:
        """Norm and linear map of each stage, first to last: two stages per block, and the one that computes ψ."""
        stages: list[tuple[Any, GroupedLinear]] = []
        for block in self.blocks:
            stages += [(block.norm_in, block.linear_in), (block.norm_out, block.linear_out)]
        return [*stages, (self.norm, self.linear)]

    def _in_one_operation(self, x: Tensor, row_weight: Tensor, stages: list[Stage], layer: int) -> Tensor:
        """The same ψ and running statistics by `ops.kernel_mlp`, without calling the modules."""
        norms = [norm for norm, _ in self.stages()]
        psi, means, variances, total = kernel_mlp(x, row_weight, stages, norms[0].epsilon)
        for norm, mean, variance in zip(norms, means, variances, strict=True):
            track(norm.tracked(layer), mean, variance, total)
        return psi

    @property
    def _is_one_operation(self) -> bool:
        """Whether `ops.kernel_mlp` computes it: batch norms and linear maps, no dropout in blocks, no hooks inside."""
        stages = self.stages()
        plain = all(type(norm) is WeightedBatchNorm and type(linear) is GroupedLinear for norm, linear in stages)
        one_epsilon = plain and len({norm.epsilon for norm, _ in stages}) == 1
        hooked = any(has_hooks(part) for part in self.modules() if part is not self)
        return one_epsilon and self.treats_equal_rows_equally and not hooked

    def constrain(self, psi: Tensor, pairs: Pairs) -> KernelValues:
        """ψ [R, C] under the constraint, with dropout on stored pairs."""
        values = split_rows(psi, pairs)
        stored, background = values.stored, values.background
        if self.constraint == "softplus":
            stored = F.softplus(stored)
            background = None if background is None else F.softplus(background)
        if self.constraint == "softmax":
            stored, background = softmax_over_support(stored, background, pairs)
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


class GroupedLinear(nn.Module):
    """y = x Wᵀ + b with a W and b per group: [R, in] → [R, out]."""

    def __init__(self, in_channels: int, out_channels: int, groups: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(groups, out_channels, in_channels))
        self.bias = nn.Parameter(torch.empty(groups, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        small_normal(self.weight)
        linear_bias(self.bias, self.weight.shape[-1])

    def forward(self, x: Tensor, group: int) -> Tensor:
        return F.linear(x, of_group(self.weight, group), of_group(self.bias, group))

    def extra_repr(self) -> str:
        groups, out_channels, in_channels = self.weight.shape
        return f"{in_channels} → {out_channels}, groups={groups}"


def split_rows(psi: Tensor, pairs: Pairs) -> KernelValues:
    """ψ [R, C] of stored pairs and, where there are zero rows, of the pairs not stored."""
    if not pairs.has_zero_rows:
        return KernelValues(psi, None)
    stored, zero = psi[: pairs.num_pairs], psi[pairs.num_pairs :]
    background = zero[pairs.node_graph] if pairs.graph_ptr is None else spread(zero, pairs.node_graph, pairs.graph_ptr)
    return KernelValues(stored, background)


def softmax_over_support(stored: Tensor, background: Tensor | None, pairs: Pairs) -> tuple[Tensor, Tensor | None]:
    """|supp(i)| · softmax_j ψ_ij: under the convolution's mean this is the sum aggregation."""
    if background is None:
        return summing_softmax(stored, pairs.receiver, pairs.support_size), None
    size = pairs.support_size.to(stored.dtype).unsqueeze(-1)
    weights, background = sparse_global_softmax(stored, background, pairs.receiver, pairs.support_size)
    return weights * size[pairs.receiver], background * size
