"""The kernels ψ of all layers by the pairs pass: `nn.kernel` with its own forward and the same parameters.

Legend: L layers, R rows (P stored pairs, then zero rows), C channels of ψ, D width.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from ckgconv.backends.cuda.pairs_pass import launch
from ckgconv.backends.cuda.pairs_pass.options import Dropout, settings_of
from ckgconv.backends.cuda.stem.modules import counted_rows
from ckgconv.backends.cuda.streams import IN_ORDER, Streams
from ckgconv.backends.cuda.supports import kernel_reason
from ckgconv.backends.stages import mlp_dropout, stages_of
from ckgconv.graphs import Pairs
from ckgconv.nn.kernel import Kernel, KernelValues, split_rows
from ckgconv.nn.kinds import Kinds
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.dropout import dropout
from ckgconv.ops.launch import draw_seeds
from ckgconv.ops.softmax import triton as softmax


class FusedKernel(Kernel):
    """`Kernel` with one launch per stage for all layers, where that applies."""

    norm: WeightedBatchNorm

    def forward(self, pair_features: Tensor, pairs: Pairs, kinds: Kinds | None = None) -> Iterable[KernelValues]:
        if kinds is not None or kernel_reason(self, pair_features) is not None:
            return super().forward(pair_features, pairs, kinds)
        layers = only_real(self.all_layers(pair_features, pairs, None, None, IN_ORDER), pairs).unbind(0)
        # Dropout of unconstrained values is part of the pass.
        finish = split_rows if self.constraint == "none" else self.constrain
        return tuple(finish(psi, pairs) for psi in layers)

    def values_per_row(self) -> int:
        """κ of `nn.step_memory`: the inputs of the stages but the first, and ψ; masks are drawn again."""
        if not torch.is_grad_enabled():
            return super().values_per_row()
        return self.layers * (2 * len(self.blocks) * self.linear.weight.shape[-1] + self.channels)

    def all_layers(
        self, pair_features: Tensor, pairs: Pairs, part: Tensor | None, seed: Tensor | None, streams: Streams
    ) -> Tensor:
        """ψ [L, R, C] of all layers before its constraint; rows of padding are not written.

        Moments `part` [3, D] (W, μ, M₂) of the features, and the seed [1] of the masks, are found here unless given.
        """
        stages, running = stages_of(self)
        settings = settings_of(pair_features, running, self.norm, streams)
        rows = counted_rows(pairs)
        if not self.training:
            return launch.evaluated_kernel_mlp(pair_features, stages, settings, rows)
        seed = draw_seeds(pair_features.device, 1)[0] if seed is None else seed
        # Under a constraint, dropout of ψ follows the constraint.
        on_kernel = self.kernel_dropout if self.constraint == "none" else 0.0
        drop = Dropout(seed, mlp_dropout(self), on_kernel, pairs.num_pairs)
        psi, _ = launch.kernel_mlp(pair_features, stages, settings, rows, drop, part)
        return psi

    def constrained_layers(
        self, pair_features: Tensor, pairs: Pairs, part: Tensor | None, seed: Tensor | None, streams: Streams
    ) -> Tensor | None:
        """ψ [L, P, C] of all layers under its constraint, or None where no fused pass computes it.

        Every pair is stored; padding is not written; for `part` and `seed` see `all_layers`.
        """
        if self.constraint == "softplus" or kernel_reason(self, pair_features) is not None:
            return None
        psi = self.all_layers(pair_features, pairs, part, seed, streams)
        if self.constraint == "none":
            return psi
        psi = softmax.summing_softmax(psi, pairs.rowptr, pairs.support_size, pairs.filled)
        return dropout(psi, self.kernel_dropout, self.training)


def only_real(psi: Tensor, pairs: Pairs) -> Tensor:
    """ψ [L, R, C] with zeros, and without gradient, in rows of padding, which the passes leave unwritten."""
    if pairs.filled is None:
        return psi
    real = torch.arange(psi.shape[1], device=psi.device) < pairs.filled
    return torch.where(real.unsqueeze(-1), psi, 0.0)
