"""Normalisation of pair and node features, in groups.

BatchNorm with a weight per row: one module for padding (weight 0), for the zero row of the sparse global support, which
stands for all pairs of a graph that are not stored (weight = their number, see `graphs.Pairs`), and for ordinary rows
(weight 1, equal to `torch.nn.BatchNorm1d`).

Statistics are computed and kept in at least float32, whatever the dtype of rows and parameters; the result has the
narrower of their two dtypes.

A module holds the parameters and statistics of L groups (layers) as rows; `group` selects one of them.

Legend: L groups, R rows, D channels.
"""

from collections.abc import Callable
from typing import Literal, Self, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_choice
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.batch_norm import Running, tracking_batch_norm
from ckgconv.ops.precision import HALVES, narrower, wide_dtype, widened

NormName = Literal["batch", "layer", "rms", "none"]


class WeightedBatchNorm(nn.Module):
    """y = γ (x - μ)/√(σ² + ε) + β with weighted batch statistics in training and running ones in evaluation.

    The running variance tracks the unbiased estimate σ² W/(W - 1), W the total weight, or σ² W where W < 2; where no
    row counts, nothing is tracked.

    Args:
        channels: D.
        groups: L sets of parameters and statistics.
        initial_scale: initial value of γ.
        skewed: whether the rows are raw coordinates, whose statistics need pairwise sums: torch's batch norm keeps
            one running float32 sum, which has only three correct digits over 10⁵ such rows.

    Shapes: x [R, D], row_weight [R] → [R, D].
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(
        self,
        channels: int,
        groups: int = 1,
        initial_scale: float = 1.0,
        skewed: bool = False,
        epsilon: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.groups = groups
        self.epsilon = epsilon
        self.momentum = momentum
        self.initial_scale = initial_scale
        self.skewed = skewed
        self.scale = nn.Parameter(torch.empty(groups, channels))
        self.shift = nn.Parameter(torch.empty(groups, channels))
        self.register_buffer("running_mean", torch.zeros(groups, channels))
        self.register_buffer("running_variance", torch.ones(groups, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.running_mean.zero_()
        self.running_variance.fill_(1)
        nn.init.constant_(self.scale, self.initial_scale)
        nn.init.zeros_(self.shift)

    def forward(self, x: Tensor, row_weight: Tensor | None = None, group: int = 0) -> Tensor:
        dtype, x = narrower(x.dtype, self.scale.dtype), widened(x)
        if not self.training or self._matches_torch(x, row_weight):
            return self._unweighted(x, group).to(dtype)
        if x.shape[0] == 0:
            return x.to(dtype)
        scale, shift = of_group(self.scale, group), of_group(self.shift, group)
        return tracking_batch_norm(x, row_weight, (scale, shift), self.tracked(group), self.epsilon).to(dtype)

    def tracked(self, group: int) -> Running:
        """What follows the batches of one group."""
        return Running(self.running_mean[group], self.running_variance[group], self.momentum)

    def _matches_torch(self, x: Tensor, row_weight: Tensor | None) -> bool:
        """Whether torch's batch norm computes the same statistics of the batch, as exactly."""
        return not self.skewed and row_weight is None and x.shape[0] > 1 and not several_processes()

    def _unweighted(self, x: Tensor, group: int) -> Tensor:
        """The same equation by torch's batch norm, in fewer sweeps over memory."""
        mean, variance = self.running_mean[group], self.running_variance[group]
        scale, shift = widened(of_group(self.scale, group)), widened(of_group(self.shift, group))
        return F.batch_norm(x, mean, variance, scale, shift, self.training, self.momentum, self.epsilon)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """`to`, `half`, `bfloat16` and the like: running statistics stay in at least float32."""
        before = self.running
        super()._apply(fn, recurse)
        for name, held in zip(("running_mean", "running_variance"), before, strict=True):
            after = getattr(self, name)
            if after.dtype in HALVES:
                setattr(self, name, held.to(after.device, wide_dtype(held.dtype)))
        return self

    @property
    def running(self) -> tuple[Tensor, Tensor]:
        """Running mean and variance [groups, D]."""
        return self.running_mean, self.running_variance

    def extra_repr(self) -> str:
        return f"{self.channels}, groups={self.groups}, initial_scale={self.initial_scale}"


class RowNorm(nn.Module):
    """Base of norms over the channels of each row: rows are independent, weights have no effect."""

    def __init__(self, channels: int, groups: int = 1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.channels = channels
        self.groups = groups
        self.epsilon = epsilon
        self.scale = nn.Parameter(torch.ones(groups, channels))

    def reset_parameters(self) -> None:
        nn.init.ones_(self.scale)

    def forward(self, x: Tensor, row_weight: Tensor | None = None, group: int = 0) -> Tensor:
        scale = widened(of_group(self.scale, group))
        return self.normalised(widened(x), scale, group).to(narrower(x.dtype, self.scale.dtype))

    def normalised(self, x: Tensor, scale: Tensor, group: int) -> Tensor:
        """What a norm defines: x [R, D] and γ [D] → [R, D]."""
        raise TypeError(f"{type(self).__name__} has no normalised: define it.")

    def extra_repr(self) -> str:
        return f"{self.channels}, groups={self.groups}"


class GroupedLayerNorm(RowNorm):
    """y = γ (x - μ_r)/√(σ_r² + ε) + β, with mean and variance of each row."""

    def __init__(self, channels: int, groups: int = 1, epsilon: float = 1e-5) -> None:
        super().__init__(channels, groups, epsilon)
        self.shift = nn.Parameter(torch.zeros(groups, channels))

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.shift)

    def normalised(self, x: Tensor, scale: Tensor, group: int) -> Tensor:
        return F.layer_norm(x, (self.channels,), scale, widened(of_group(self.shift, group)), self.epsilon)


class GroupedRMSNorm(RowNorm):
    """y = γ x/√(Σ_c x_c²/D + ε): neither mean nor shift."""

    def normalised(self, x: Tensor, scale: Tensor, group: int) -> Tensor:
        return F.rms_norm(x, (self.channels,), scale, self.epsilon)


class NoNorm(nn.Module):
    """y = x."""

    def __init__(self, channels: int, groups: int = 1) -> None:
        super().__init__()

    def reset_parameters(self) -> None:
        """Nothing to reset."""

    def forward(self, x: Tensor, row_weight: Tensor | None = None, group: int = 0) -> Tensor:
        return x


Norm = WeightedBatchNorm | GroupedLayerNorm | GroupedRMSNorm | NoNorm


def of_group(parameter: Tensor, group: int) -> Tensor:
    """Row `group` of a parameter; a single row is a view, whose gradient needs no zeros around it."""
    return parameter.squeeze(0) if parameter.shape[0] == 1 else parameter[group]


def make_norm(name: NormName, channels: int, groups: int = 1) -> Norm:
    """The norm of that name."""
    check_choice("norm", name, get_args(NormName))
    return NORMS[name](channels, groups)


NORMS: dict[NormName, type[Norm]] = {
    "batch": WeightedBatchNorm,
    "layer": GroupedLayerNorm,
    "rms": GroupedRMSNorm,
    "none": NoNorm,
}
