"""Standardised targets: the network learns (y - mean)/s.d., both of the training split; metrics stay in the user's
units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target, [T]; (0, 1) leaves targets as they are."""

    mean: Tensor
    spread: Tensor

    def to(self, device: torch.device) -> "TargetScale":
        return TargetScale(self.mean.to(device), self.spread.to(device))

    def standardise(self, target: Tensor) -> Tensor:
        """Targets [M, T] in the user's units → what the network learns."""
        return (target - self.mean) / self.spread

    def restore(self, prediction: Tensor) -> Tensor:
        """Predictions [M, T] → the user's units."""
        return prediction * self.spread + self.mean


def fitted(target: Tensor, scaled: Sequence[bool] | None = None) -> TargetScale:
    """The scale of known training targets [M, T]; a constant target keeps spread 1.

    `scaled` [T] says which targets are standardised; None: all.
    """
    target = target.reshape(target.shape[0], -1).double()
    known = target.isfinite()
    count = known.sum(0).clamp(min=1)
    mean = target.nan_to_num().sum(0) / count
    spread = ((target - mean).square().nan_to_num().sum(0) / count).sqrt()
    spread = torch.where(spread > 1e-12, spread, 1.0)
    if scaled is not None:
        chosen = torch.tensor(scaled, device=target.device)
        mean, spread = mean.where(chosen, 0.0), spread.where(chosen, 1.0)
    return TargetScale(mean.float(), spread.float())


def unscaled() -> TargetScale:
    """The scale that leaves targets as they are."""
    return TargetScale(torch.zeros(1), torch.ones(1))
