"""AdamW (decoupled weight decay) with clipping, as the equations read.

    g ← g min(1, c/(‖g‖ + 10⁻⁶))
    m ← β₁ m + (1 - β₁) g        v ← β₂ v + (1 - β₂) g²
    p ← p - η λ p - η/(1 - β₁ᵗ) · m / ( √(v/(1 - β₂ᵗ)) + ε )

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


def clipped_adamw(parameter: Tensor, gradient: Tensor, moments: Moments, rate: Tensor, rates: Rates) -> None:
    """One update of `parameter` and `moments`."""
    first, second, step = moments
    step += 1
    gradient = gradient * (rates.clip_norm / (gradient.norm() + 1e-6)).clamp(max=1)
    first.lerp_(gradient, 1 - rates.beta1)
    second.lerp_(gradient.square(), 1 - rates.beta2)
    root = (second / (1 - torch.pow(rates.beta2, step))).sqrt() + rates.epsilon
    change = rates.weight_decay * parameter + first / (1 - torch.pow(rates.beta1, step)) / root
    parameter -= rate * change
