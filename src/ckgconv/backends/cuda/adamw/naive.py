"""AdamW (decoupled weight decay) with clipping, as the equations read.

    g ← g min(1, c/(‖g‖ + 10⁻⁶))
    m ← β₁ m + (1 - β₁) g        v ← β₂ v + (1 - β₂) g²
    p ← p - η λ p - η/(1 - β₁ᵗ) · m / ( √(v/(1 - β₂ᵗ)) + ε )
    a ← d a + (1 - d) p                                          where an average of the weights is asked for

All parameters as one vector [M]; everything changes in place.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """State of the optimiser."""

    first: Tensor  # [M] m
    second: Tensor  # [M] v
    step: Tensor  # scalar t, floating


class Rates(NamedTuple):
    """Constants of an update; the learning rate η is a separate tensor."""

    clip_norm: float
    weight_decay: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    ema_decay: float = 0.0  # d; 0: there is no average


def clipped_adamw(
    parameter: Tensor, gradient: Tensor, moments: Moments, rate: Tensor, rates: Rates, average: Tensor | None = None
) -> None:
    """One update of `parameter`, `moments` and, where it is given, `average` [M]."""
    first, second, step = moments
    step += 1
    gradient = gradient * (rates.clip_norm / (gradient.norm() + 1e-6)).clamp(max=1)
    first.lerp_(gradient, 1 - rates.beta1)
    second.lerp_(gradient.square(), 1 - rates.beta2)
    root = (second / (1 - torch.pow(rates.beta2, step))).sqrt() + rates.epsilon
    change = rates.weight_decay * parameter + first / (1 - torch.pow(rates.beta1, step)) / root
    parameter -= rate * change
    if average is not None:
        average.lerp_(parameter, 1 - rates.ema_decay)
