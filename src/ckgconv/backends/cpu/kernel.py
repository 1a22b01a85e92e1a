"""The kernels ψ of a network on a CPU, evaluated lazily, one layer at a time (Eqs. 5 and 6).

So a layer is convolved while its ψ is still in cache. In training, `kernel_mlp` of this folder replaces a dozen torch
operations and keeps its buffers from step to step (`ops.kernel_mlp` is that of a single layer with weighted rows). In
evaluation no statistics couple the rows, so equal rows of pair features are evaluated once.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from ckgconv.backends.cpu import kernel_mlp
from ckgconv.backends.cpu.memory import Memory
from ckgconv.backends.stages import by_layer, has_batch_norms, mlp_dropout, stages_of
from ckgconv.graphs import Pairs
from ckgconv.nn.kernel import Kernel, KernelValues, split_rows
from ckgconv.nn.kernel_memory import mask_values
from ckgconv.nn.kinds import Kinds
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.derivatives import under_transform
from ckgconv.ops.distinct import distinct_rows, spread_rows

# Of a step, shared by all layers: three of `kernel_mlp`, and two of the convolution while they exist.
BUFFERS = 5


class CPUKernel(Kernel):
    """`Kernel` by the passes of this package where they apply, otherwise the plain module."""

    norm: WeightedBatchNorm
    _memory: Memory

    def forward(self, pair_features: Tensor, pairs: Pairs, kinds: Kinds | None = None) -> Iterable[KernelValues]:
        if not self.applies(pair_features, pairs):
            return super().forward(pair_features, pairs, kinds)
        values = self._trained(pair_features, pairs) if self.training else self._evaluated(pair_features, pairs, kinds)
        # A hook may read the values, which an iterator yields only once.
        return tuple(values) if self._forward_hooks else values

    def applies(self, pair_features: Tensor, pairs: Pairs) -> bool:
        """Batch norms; in training, rows that all count once; in evaluation, no gradient."""
        exact = pair_features.dtype == self.linear.weight.dtype in (torch.float32, torch.float64)
        plain = exact and has_batch_norms(self) and pair_features.device.type == "cpu"
        if not plain or under_transform() or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
            return False
        if not self.training:
            return not torch.is_grad_enabled()
        alike = pairs.row_weight is None and pair_features.shape[0] > 1 and not several_processes()
        return alike and self.constraint == "none"

    def values_per_row(self) -> int:
        """κ of `nn.step_memory`: inputs of the stages but the first, ψ, masks, buffers; or ψ of one layer."""
        if not has_batch_norms(self) or self.constraint != "none" or torch.is_grad_enabled() != self.training:
            return super().values_per_row()
        if not self.training:
            return self.channels
        width = self.linear.weight.shape[-1]
        return self.layers * (2 * len(self.blocks) * width + self.channels + mask_values(self)) + BUFFERS * width

    def _trained(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        stages, running = stages_of(self)
        x = pair_features.contiguous()
        shared = kernel_mlp.share(x, running[0], self.norm, self.memory, len(stages))
        dropout = kernel_mlp.Dropout(mlp_dropout(self), self.kernel_dropout)
        for layer, own in enumerate(by_layer(stages)):
            own_running = [(mean[layer], variance[layer]) for mean, variance in running]
            tracking = kernel_mlp.Tracking(own_running, self.norm.momentum, self.norm.epsilon)
            yield split_rows(kernel_mlp.kernel_mlp(x, own, shared, tracking, dropout), pairs)

    def _evaluated(self, pair_features: Tensor, pairs: Pairs, kinds: Kinds | None) -> Iterator[KernelValues]:
        rows = distinct_rows(pair_features) if kinds is None else kinds.rows
        x = pair_features.contiguous()
        if kinds is not None:
            pairs = kinds.pairs
        elif rows is not None:
            x = x.index_select(0, rows.representative)
        shared = kernel_mlp.share_buffers(x, self.memory)
        stages, running = stages_of(self)
        for own in by_layer(kernel_mlp.folded(stages, running, self.norm.epsilon)):
            psi = kernel_mlp.evaluated_kernel_mlp(x, own, shared)
            yield self.constrain(psi if rows is None else spread_rows(psi, rows), pairs)

    @property
    def memory(self) -> Memory:
        """Kept from step to step, created on first use."""
        if "_memory" not in self.__dict__:
            self._memory = Memory()
        return self._memory
