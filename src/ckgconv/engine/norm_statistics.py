"""What batch norms evaluate with: for each channel, the median over the batches of the last epoch.

    μ_c = median_b μ_bc        σ²_c = median_b σ²_bc        b = the last batches of an epoch, at most `MOST`

Running averages, which a published recipe evaluates with, hold about the last twenty batches (momentum 0.1), so that
they vary from epoch to epoch at nearly equal weights; a median is moved little by a few unusual batches. Training reads
neither: the weights of a run are the same with both.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ckgconv.checks import require
from ckgconv.nn.norm import WeightedBatchNorm

MOST = 256  # batches whose statistics are kept
MOST_VALUES = 2**24  # of all batches together, 64 MB


class BatchStatistics:
    """Statistics of the batches of an epoch, and their median in the norms of a model.

    Args:
        model: its norms follow each batch alone from now on; they are on their device, and stay the same tensors.
    """

    def __init__(self, model: nn.Module) -> None:
        norms: list[Any] = [part for part in model.modules() if _tracks(part)]
        require(
            len(norms) > 0,
            "training.norm_statistics is 'median', and the network has no batch norm: set it to 'running'.",
        )
        for norm in norms:
            norm.momentum = 1.0
        self.running = [value for norm in norms for value in _running(norm)]
        values = sum(value.numel() for value in self.running)
        rows = max(1, min(MOST, MOST_VALUES // values))
        self.table = self.running[0].new_zeros(rows, values)  # [B, ·] of the last batches
        self.counter = torch.zeros(1, dtype=torch.int64, device=self.table.device)  # batches of this epoch

    def begin(self) -> None:
        """Before the first step of an epoch."""
        self.counter.zero_()

    @torch.no_grad()
    def record(self) -> None:
        """After a step; part of a captured one."""
        flat = torch.cat([value.flatten() for value in self.running])
        self.table.index_copy_(0, self.counter.remainder(self.table.shape[0]), flat.unsqueeze(0))
        self.counter.add_(1)

    @torch.no_grad()
    def settle(self) -> None:
        """After the last step of an epoch: the norms evaluate with the medians."""
        count = min(int(self.counter), self.table.shape[0])
        if count:
            # Sorted: `median` has no deterministic form on a GPU.
            medians = self.table[:count].sort(0).values[(count - 1) // 2]
            parts = medians.split([value.numel() for value in self.running])
            for value, part in zip(self.running, parts, strict=True):
                value.copy_(part.view_as(value))


def _tracks(part: nn.Module) -> bool:
    """Whether a module is a batch norm with running statistics."""
    kinds = (WeightedBatchNorm, nn.modules.batchnorm._BatchNorm)
    return isinstance(part, kinds) and part.running_mean is not None


def _running(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Running mean and variance."""
    if isinstance(norm, WeightedBatchNorm):
        return norm.running
    assert isinstance(norm, nn.modules.batchnorm._BatchNorm)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean, norm.running_var
