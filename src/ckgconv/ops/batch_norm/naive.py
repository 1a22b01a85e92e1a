"""Batch normalisation with a weight per row, as the equation reads.

    W = Σ_r w_r      μ = 1/W Σ_r w_r x_r      σ² = 1/W Σ_r w_r (x_r - μ)²      y = γ (x - μ)/√(σ² + ε) + β

Legend: R rows, D channels, any leading dimensions (groups).
"""

import torch
from torch import Tensor


def weighted_moments(x: Tensor, row_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """μ and biased σ² of x [..., R, D] over its rows, each [..., D], and W, a scalar.

    Rows of weight 0 do not count, a row of weight m counts as m equal rows.
    """
    if row_weight is None:
        # Sums, not torch.var_mean, which is ten times slower over the rows of a matrix on a CPU.
        mean = x.mean(-2)
        variance = (x - mean.unsqueeze(-2)).square().mean(-2)
        return mean, variance, torch.full((), x.shape[-2], dtype=x.dtype, device=x.device)
    total = row_weight.sum()
    share = row_share(row_weight, total)
    # Pairwise sums, not a matrix product, which in float32 loses two digits over 10⁵ skewed rows.
    mean = (share * x).sum(-2)
    variance = (share * (x - mean.unsqueeze(-2)).square()).sum(-2)
    return mean, variance, total


def row_share(row_weight: Tensor, total: Tensor) -> Tensor:
    """[R, 1] w_r / W; zero where no row counts."""
    return (row_weight / total.clamp(min=torch.finfo(total.dtype).tiny)).unsqueeze(-1)


def weighted_batch_norm(
    x: Tensor, row_weight: Tensor | None, scale: Tensor, shift: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """y [..., R, D], and μ, σ² [..., D], W of the batch."""
    mean, variance, total = weighted_moments(x, row_weight)
    standard = (x - mean.unsqueeze(-2)) * torch.rsqrt(variance + epsilon).unsqueeze(-2)
    return affine(standard, scale, shift), mean, variance, total


def affine(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """γ ⊙ x + β for x [..., R, D] and scale, shift [..., D]."""
    return torch.addcmul(shift.unsqueeze(-2), x, scale.unsqueeze(-2))
