"""The kernels ψ of a network on a CPU, one layer at a time, when it is needed (Eqs. 5 and 6).

Each layer is convolved while its ψ is still in cache. In training `kernel_mlp` replaces a dozen torch operations and
keeps its buffers from step to step. In evaluation no statistics couple the rows, so equal rows of pair features are
evaluated once.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from ckgconv.backends.cpu import kernel_mlp
from ckgconv.backends.cpu.distinct import distinct_rows
from ckgconv.backends.cpu.memory import Memory
from ckgconv.backends.stages import by_layer, has_batch_norms, mlp_dropout, stages_of
from ckgconv.graphs import Pairs
from ckgconv.nn.kernel import Kernel, KernelValues, split_rows
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.derivatives import transformed


class CPUKernel(Kernel):
    """`Kernel` by the passes of this package where they apply, else as it is."""

    norm: WeightedBatchNorm
    _memory: Memory

    def forward(self, pair_features: Tensor, pairs: Pairs) -> Iterable[KernelValues]:
        if not self.applies(pair_features, pairs):
            return super().forward(pair_features, pairs)
        values = self._trained(pair_features, pairs) if self.training else self._evaluated(pair_features, pairs)
        # A hook may read the values, which an iterator yields only once.
        return tuple(values) if self._forward_hooks else values

    def applies(self, pair_features: Tensor, pairs: Pairs) -> bool:
        """Batch norms; in training, rows that all count once; in evaluation, no gradient."""
        exact = pair_features.dtype == self.linear.weight.dtype in (torch.float32, torch.float64)
        plain = exact and has_batch_norms(self) and pair_features.device.type == "cpu"
        if not plain or transformed() or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
            return False
        if not self.training:
            return not torch.is_grad_enabled()
        alike = pairs.row_weight is None and pair_features.shape[0] > 1 and not several_processes()
        return alike and self.constraint == "none"

    def _trained(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        stages, running = stages_of(self)
        x = pair_features.contiguous()
        shared = kernel_mlp.share(x, running[0], self.norm, self.memory, len(stages))
        dropout = kernel_mlp.Dropout(mlp_dropout(self), self.kernel_dropout)
        for layer, own in enumerate(by_layer(stages)):
            own_running = [(mean[layer], variance[layer]) for mean, variance in running]
            tracking = kernel_mlp.Tracking(own_running, self.norm.momentum, self.norm.epsilon)
            yield split_rows(kernel_mlp.kernel_mlp(x, own, shared, tracking, dropout), pairs)

    def _evaluated(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        rows, place = distinct_rows(pair_features)
        shared = kernel_mlp.share_buffers(rows, self.memory)
        stages, running = stages_of(self)
        for own in by_layer(kernel_mlp.folded(stages, running, self.norm.epsilon)):
            psi = kernel_mlp.evaluated_kernel_mlp(rows, own, shared)
            yield self.constrain(psi if place is None else psi.index_select(0, place), pairs)

    @property
    def memory(self) -> Memory:
        """Kept from step to step, created on first use."""
        if "_memory" not in self.__dict__:
            self._memory = Memory()
        return self._memory
