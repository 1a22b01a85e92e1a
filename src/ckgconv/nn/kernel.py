"""The continuous kernel ψ, for all layers of a network at once (Eqs. 5 and 6).

    MLP(x) = x + FC∘GELU∘Norm∘FC∘GELU∘Norm(x)           ψ(P) = FC∘Norm∘MLP∘…∘MLP(P)

ψ never sees node features. So the kernels of L layers are one grouped MLP over the pairs of a batch, evaluated before
any node is touched; the statistics of its input are shared by all groups.

Legend: L groups (layers), R rows (P stored pairs, then zero rows), D width, C channels of ψ, N nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.backends.cpu import kernel_mlp as cpu
from ckgconv.backends.cpu.distinct import distinct_rows
from ckgconv.backends.cpu.memory import Memory
from ckgconv.backends.cuda.pairs_pass.naive import Stage
from ckgconv.checks import check_choice, check_probability, require
from ckgconv.graphs import Pairs
from ckgconv.nn.initialise import linear_bias, small_normal
from ckgconv.nn.norm import Group, NormName, WeightedBatchNorm, make_norm
from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.dispatch import fits
from ckgconv.ops.dropout import dropout
from ckgconv.ops.launch import draw_seeds
from ckgconv.ops.pool import spread
from ckgconv.ops.softmax import sparse_global_softmax, summing_softmax

Constraint = Literal["none", "softmax", "softplus"]


@dataclass(frozen=True)
class KernelValues:
    """ψ of one layer on the pairs of a batch."""

    stored: Tensor  # [P, C]
    background: Tensor | None  # [N, C] coefficient of the pairs not stored, None where all are


class Kernel(nn.Module):
    """L kernels of `blocks` residual MLP blocks; 0 blocks is a linear kernel.

    Dropout: `mlp_dropout` ends each block before the residual sum, `kernel_dropout` acts on ψ itself. Zero rows
    stand for many pairs, whose independent masks cannot be drawn by one row: they take the expectation, no dropout.

    Args:
        width: D, channels of the pair features and of the blocks.
        channels: C, channels of ψ.
        layers: L.
        blocks: residual MLP blocks.
        norm: "batch", "layer" or "none".
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
        self._memory = Memory()

    def reset_parameters(self) -> None:
        for block in self.blocks:
            block.reset_parameters()
        self.norm.reset_parameters()
        self.linear.reset_parameters()

    def forward(self, pair_features: Tensor, pairs: Pairs) -> tuple[KernelValues, ...]:
        if self.runs_fused(pair_features):
            stacked = only_real(self.all_layers(pair_features, pairs), pairs).unbind(0)
            free = self.constraint == "none"
            return tuple(split_rows(psi, pairs) if free else self._constrain(psi, pairs) for psi in stacked)
        if self.runs_on_cpu(pair_features, pairs):
            return tuple(self._on_cpu(pair_features, pairs))
        first = self.blocks[0].norm_in if len(self.blocks) else self.norm
        shared = first.standardise(pair_features, pairs.row_weight)
        values: list[Tensor] = []
        for group in group_slices(self.layers, pair_features.device):
            psi = self._evaluate(pair_features, first.finish(shared, group), pairs, group)
            values.extend(psi.unbind(0) if isinstance(group, slice) else [psi])
        return tuple(self._constrain(psi, pairs) for psi in values)

    def in_turn(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        """The same layer by layer: a CPU evaluates each when it is asked for, and so convolves it while in cache.

        Hooks see a call of the whole module.
        """
        if self.runs_on_cpu(pair_features, pairs) and not self._forward_hooks and not self._forward_pre_hooks:
            return self._on_cpu(pair_features, pairs)
        return iter(self(pair_features, pairs))

    def runs_fused(self, pair_features: Tensor) -> bool:
        """Whether `all_layers` can be called: batch norms, and gradients in training only."""
        plain = isinstance(self.norm, WeightedBatchNorm) and not several_processes()
        if not plain or not dispatch.uses_triton(pair_features) or (torch.is_grad_enabled() and not self.training):
            return False
        return fits(pair_features, pair_features.shape[0], max(self.linear.weight.shape[-2:]))

    def all_layers(
        self, pair_features: Tensor, pairs: Pairs, part: Tensor | None = None, seed: Tensor | None = None
    ) -> Tensor:
        """ψ [L, R, C] of all layers by fused kernels, before its constraint; rows of padding are not written.

        Moments `part` [3, D] (W, μ, M₂) of the features, and the seed [1] of the masks, are found here unless given.
        """
        from ckgconv.backends.cuda.pairs_pass import triton as kernels

        assert isinstance(self.norm, WeightedBatchNorm)
        stages, running = self._stages()
        if not self.training:
            return kernels.evaluated_kernel_mlp(pair_features, stages, running, pairs.filled, self.norm.epsilon)
        # Padding alone needs no weights: the kernels stop at the filled rows.
        weight = None if pairs.filled is not None and not pairs.has_zero_rows else pairs.row_weight
        psi, _ = kernels.kernel_mlp(
            pair_features,
            stages,
            running,
            self.norm.momentum,
            weight,
            pairs.filled,
            draw_seeds(pair_features.device, 1)[0] if seed is None else seed,
            self.blocks[0].dropout if len(self.blocks) else 0.0,
            # Behind a constraint where there is one.
            self.kernel_dropout if self.constraint == "none" else 0.0,
            pairs.num_pairs,
            self.norm.epsilon,
            part,
        )
        return psi

    def stacked(self, pair_features: Tensor, pairs: Pairs, part: Tensor | None, seed: Tensor | None) -> Tensor | None:
        """ψ [L, P, C] of all layers where fused kernels give it with its constraint, else None; padding is not written.

        Every pair is stored; for `part` and `seed` see `all_layers`.
        """
        if self.constraint == "softplus" or not self.runs_fused(pair_features):
            return None
        psi = self.all_layers(pair_features, pairs, part, seed)
        if self.constraint == "none":
            return psi
        from ckgconv.ops.softmax import triton as kernels

        psi = kernels.summing_softmax(psi, pairs.rowptr, pairs.support_size, pairs.filled)
        return dropout(psi, self.kernel_dropout, self.training)

    def runs_on_cpu(self, pair_features: Tensor, pairs: Pairs) -> bool:
        """Whether the passes of `ops.kernel_mlp.cpu` apply: batch norms, and rows that all count alike in training."""
        plain = isinstance(self.norm, WeightedBatchNorm) and pair_features.device.type == "cpu"
        if not plain or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
            return False
        if not self.training:
            return not torch.is_grad_enabled()
        alone = pairs.row_weight is None and pair_features.shape[0] > 1 and not several_processes()
        return alone and self.constraint == "none"

    def _on_cpu(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        return self._trained(pair_features, pairs) if self.training else self._evaluated(pair_features, pairs)

    def _trained(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        assert isinstance(self.norm, WeightedBatchNorm)
        stages, running = self._stages()
        pair_features = pair_features.contiguous()
        momentum, epsilon = self.norm.momentum, self.norm.epsilon
        shared = cpu.share(pair_features, running[0], momentum, epsilon, self._memory, len(stages))
        mlp_dropout = self.blocks[0].dropout if len(self.blocks) else 0.0
        for layer, own_stages in enumerate(by_layer(stages)):
            own_running = [(mean[layer], variance[layer]) for mean, variance in running]
            psi = cpu.kernel_mlp(
                pair_features,
                own_stages,
                shared,
                own_running,
                momentum,
                mlp_dropout,
                self.kernel_dropout,
                epsilon,
            )
            yield split_rows(psi, pairs)

    def _evaluated(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        """No statistics couple the rows, so equal ones are evaluated once."""
        assert isinstance(self.norm, WeightedBatchNorm)
        rows, place = distinct_rows(pair_features)
        shared = cpu.share_rooms(rows, self._memory)
        stages, running = self._stages()
        for own_stages in by_layer(cpu.folded(stages, running, self.norm.epsilon)):
            psi = cpu.evaluated_kernel_mlp(rows, own_stages, shared)
            yield self._constrain(psi if place is None else psi.index_select(0, place), pairs)

    def _stages(self) -> tuple[list[Stage], list[tuple[Tensor, Tensor]]]:
        """Parameters and running statistics of all layers, stage by stage."""
        norms: list[Any] = [norm for block in self.blocks for norm in (block.norm_in, block.norm_out)]
        linears = [linear for block in self.blocks for linear in (block.linear_in, block.linear_out)]
        norms.append(self.norm)
        stages = [
            Stage(norm.scale, norm.shift, linear.weight, linear.bias)
            for norm, linear in zip(norms, [*linears, self.linear], strict=True)
        ]
        return stages, [norm.running for norm in norms]

    def _evaluate(self, x: Tensor, normalised: Tensor, pairs: Pairs, group: Group) -> Tensor:
        """ψ before its constraint, [R, C] for one group or [L, R, C] for all; x and Norm(x) of the first norm."""
        following = [*(block.norm_in for block in self.blocks[1:]), self.norm][: len(self.blocks)]
        for block, norm in zip(self.blocks, following, strict=True):
            x = x + block(normalised, pairs, group)
            normalised = norm(x, pairs.row_weight, group)
        return self.linear(normalised, group)

    def _constrain(self, psi: Tensor, pairs: Pairs) -> KernelValues:
        values = split_rows(psi, pairs)
        stored, background = values.stored, values.background
        if self.constraint == "softplus":
            stored = F.softplus(stored)
            background = None if background is None else F.softplus(background)
        if self.constraint == "softmax":
            stored, background = softmax_over_support(stored, background, pairs)
        return KernelValues(dropout(stored, self.kernel_dropout, self.training), background)

    def extra_repr(self) -> str:
        return f"layers={self.layers}, kernel_dropout={self.kernel_dropout}, constraint={self.constraint!r}"


class GivenKernels(nn.Module):
    """One module of the user's own per layer, each from pair features [R, D] to [R, C], in place of a `Kernel`.

    A module sees zero rows as rows like any other: with a sparse global support it must treat each row alone.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(modules)

    def reset_parameters(self) -> None:
        for part in self.layers.modules():
            if part is not self.layers and callable(reset := getattr(part, "reset_parameters", None)):
                reset()

    def forward(self, pair_features: Tensor, pairs: Pairs) -> tuple[KernelValues, ...]:
        return tuple(split_rows(layer(pair_features), pairs) for layer in self.layers)


class KernelBlock(nn.Module):
    """FC∘GELU∘Norm∘FC∘GELU of a normalised input: a block without its first norm and its residual sum."""

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

    def forward(self, normalised: Tensor, pairs: Pairs, group: Group) -> Tensor:
        hidden = self.linear_in(F.gelu(normalised), group)
        hidden = self.linear_out(F.gelu(self.norm_out(hidden, pairs.row_weight, group)), group)
        return self._drop(hidden, pairs)

    def _drop(self, hidden: Tensor, pairs: Pairs) -> Tensor:
        """Dropout on the rows of stored pairs; zero rows keep their expectation."""
        if not pairs.has_zero_rows:
            return dropout(hidden, self.dropout, self.training)
        stored, zero = hidden[..., : pairs.num_pairs, :], hidden[..., pairs.num_pairs :, :]
        return torch.cat([dropout(stored, self.dropout, self.training), zero], dim=-2)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


class GroupedLinear(nn.Module):
    """y = x Wᵀ + b with a W and b per group: [R, in] or [L, R, in] → [R, out] or [L, R, out]."""

    def __init__(self, in_channels: int, out_channels: int, groups: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(groups, out_channels, in_channels))
        self.bias = nn.Parameter(torch.empty(groups, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        small_normal(self.weight)
        linear_bias(self.bias, self.weight.shape[-1])

    def forward(self, x: Tensor, group: Group) -> Tensor:
        if isinstance(group, int):
            return F.linear(x, self.weight[group], self.bias[group])
        return torch.baddbmm(self.bias.unsqueeze(-2), x.expand(self.weight.shape[0], -1, -1), self.weight.mT)

    def extra_repr(self) -> str:
        groups, out_channels, in_channels = self.weight.shape
        return f"{in_channels} → {out_channels}, groups={groups}"


def only_real(psi: Tensor, pairs: Pairs) -> Tensor:
    """ψ [L, R, C] with zeros, and no gradient, in rows of padding, which the fused passes leave open."""
    if pairs.filled is None:
        return psi
    real = torch.arange(psi.shape[1], device=psi.device) < pairs.filled
    return torch.where(real.unsqueeze(-1), psi, 0.0)


def split_rows(psi: Tensor, pairs: Pairs) -> KernelValues:
    """ψ [R, C] of stored pairs and, where there are zero rows, of the pairs not stored."""
    if not pairs.has_zero_rows:
        return KernelValues(psi, None)
    stored, zero = psi[: pairs.num_pairs], psi[pairs.num_pairs :]
    background = zero[pairs.node_graph] if pairs.graph_ptr is None else spread(zero, pairs.node_graph, pairs.graph_ptr)
    return KernelValues(stored, background)


def by_layer(stages: Sequence[Stage]) -> Iterator[list[Stage]]:
    """Stages of one layer after the other."""
    # Unbound, not indexed: the gradient of all slices is then put together once.
    fields = [[field.unbind(0) for field in stage] for stage in stages]
    for layer in range(stages[0].scale.shape[0]):
        yield [Stage(*(field[layer] for field in stage)) for stage in fields]


def group_slices(groups: int, device: torch.device) -> list[Group]:
    """All groups at once on a GPU, where each launch costs; one after the other on a CPU, where the rows of one
    group stay in cache."""
    return [slice(None)] if device.type == "cuda" else list(range(groups))


def softmax_over_support(stored: Tensor, background: Tensor | None, pairs: Pairs) -> tuple[Tensor, Tensor | None]:
    """|supp(i)| · softmax_j ψ_ij: under the convolution's mean this is the sum aggregation."""
    if background is None:
        return summing_softmax(stored, pairs.receiver, pairs.support_size), None
    size = pairs.support_size.unsqueeze(-1)
    weights, background = sparse_global_softmax(stored, background, pairs.receiver, pairs.support_size)
    return weights * size[pairs.receiver], background * size
