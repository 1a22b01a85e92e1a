"""The kernels ψ of all layers (Eqs. 5 and 6) as the equation reads.

    hᵇ⁺¹ = hᵇ + drop( FC∘GELU∘BN∘FC∘GELU∘BN(hᵇ) ),   h⁰ = e        ψ = drop( FC∘BN(hᴮ) )

A chain of 2B + 1 stages, each a norm, an activation (none in the last) and a linear map; every second one ends a block.

Legend: L groups (layers), R rows, K channels of a stage's input, D of its output.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.batch_norm.naive import affine, weighted_moments


class Stage(NamedTuple):
    """FC∘act∘BN of L groups."""

    scale: Tensor  # [L, K] γ
    shift: Tensor  # [L, K] β
    weight: Tensor  # [L, D, K]
    bias: Tensor  # [L, D]


Drop = Callable[[Tensor, int], Tensor]  # values and the number of their stage → values


def kernel_mlp(
    x: Tensor, stages: Sequence[Stage], row_weight: Tensor | None, drop: Drop, epsilon: float
) -> tuple[Tensor, Tensor]:
    """ψ [L, R, D] of x [R, K] in training, and the moments [2B + 1, 3, L, K] (W, μ, σ²) of each stage's input."""
    moments: list[Tensor] = []
    state, last = x, len(stages) - 1
    values = x
    for number, stage in enumerate(stages):
        mean, variance, total = weighted_moments(values, row_weight)
        moments.append(torch.stack([each.expand_as(stage.scale) for each in (total, mean, variance)]))
        standard = (values - mean.unsqueeze(-2)) * torch.rsqrt(variance + epsilon).unsqueeze(-2)
        normal = affine(standard, stage.scale, stage.shift)
        active = normal if number == last else F.gelu(normal)
        values = torch.baddbmm(stage.bias.unsqueeze(-2), active, stage.weight.mT)
        if number % 2 or number == last:
            values = drop(values, number)
        if number % 2:
            values = state = state + values
    return values, torch.stack(moments)
