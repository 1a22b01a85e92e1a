"""Weighted batch normalisation with its backward written out, so that only x is kept.

    x̂ = (x - μ) ρ,  ρ = 1/√(σ² + ε),  y = γ x̂ + β
    ∂x_r = γ ρ ( g_r - w_r/W Σ g - w_r/W x̂_r Σ g x̂ )        ∂γ = Σ g x̂        ∂β = Σ g

In a data-parallel run the sums inside the moments and inside ∂x run over the rows of all processes; ∂γ and ∂β stay
local, since gradients of parameters are averaged over processes anyway.

Automatic differentiation of `naive` keeps four tensors of the size of x; this keeps one. Higher derivatives are those
of `naive`.

Legend: R rows, D channels, any leading dimensions (groups).
"""

from typing import Any

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.ops.all_reduce import all_reduce, several_processes
from ckgconv.ops.batch_norm import naive
from ckgconv.ops.batch_norm.naive import row_share
from ckgconv.ops.derivatives import specification_gradients, under_transform, will_be_differentiated
from ckgconv.ops.precision import widened


class WeightedStandardisation(torch.autograd.Function):
    """x [..., R, D], row_weight [R] or None, γ and β [..., D] → y, μ, σ², W; the moments carry no gradient."""

    @staticmethod
    def forward(
        x: Tensor, row_weight: Tensor | None, scale: Tensor, shift: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        # One new tensor, here and below: on a CPU its pages cost more time than all that is written to them.
        y = torch.empty_like(x)
        moments = shared_moments if several_processes() else moments_in
        mean, variance, total_weight = moments(y, x, row_weight)
        factor = scale * torch.rsqrt(variance + epsilon)
        # Centred before scaling: in float32 a large mean would otherwise cancel digits.
        torch.sub(x, mean.unsqueeze(-2), out=y)
        torch.addcmul(shift.unsqueeze(-2), y, factor.unsqueeze(-2), out=y)
        return y, mean, variance, total_weight

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, row_weight, scale, shift, epsilon = inputs
        _, mean, variance, total_weight = output
        ctx.mark_non_differentiable(mean, variance, total_weight)
        ctx.save_for_backward(x, row_weight, scale, shift, mean, torch.rsqrt(variance + epsilon), total_weight)
        ctx.epsilon = epsilon

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, row_weight, scale, shift, mean, root, total_weight = ctx.saved_tensors
        if will_be_differentiated(gradient):
            return differentiable_backward(ctx, gradient, x, row_weight, scale, shift)
        standard = torch.sub(x, mean.unsqueeze(-2)).mul_(root.unsqueeze(-2))
        gradient_shift = gradient.sum(-2)
        gradient_scale = standard.mul_(gradient).sum(-2)
        standard = torch.sub(x, mean.unsqueeze(-2), out=standard).mul_(root.unsqueeze(-2))
        sums = all_reduce(gradient_shift).unsqueeze(-2), all_reduce(gradient_scale).unsqueeze(-2)
        pulled = torch.addcmul(sums[0], standard, sums[1], out=standard)
        share = 1 / total_weight if row_weight is None else row_share(row_weight, total_weight)
        gradient_x = torch.addcmul(gradient, pulled, share, value=-1, out=pulled).mul_((scale * root).unsqueeze(-2))
        return gradient_x, None, gradient_scale, gradient_shift, None


def differentiable_backward(
    ctx: Any, gradient: Tensor, x: Tensor, row_weight: Tensor | None, scale: Tensor, shift: Tensor
) -> tuple[Tensor | None, ...]:
    """The same gradients, of `naive`."""
    require(
        not several_processes(),
        "A second derivative was asked for (create_graph=True) in a run of several processes, whose batch statistics "
        "carry first derivatives only: use one process.",
    )

    def normalised(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return naive.weighted_batch_norm(x, row_weight, scale, shift, ctx.epsilon)[0]

    needed = [ctx.needs_input_grad[place] for place in (0, 2, 3)]
    gradient_x, *others = specification_gradients(normalised, (x, scale, shift), needed, gradient)
    return gradient_x, None, *others, None


def moments_in(buffer: Tensor, x: Tensor, row_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The numbers of `naive.weighted_moments`, without gradient; `buffer` is overwritten."""
    if row_weight is None:
        mean = x.mean(-2)
        variance = torch.sub(x, mean.unsqueeze(-2), out=buffer).square_().mean(-2)
        return mean, variance, torch.full((), x.shape[-2], dtype=x.dtype, device=x.device)
    total = row_weight.sum()
    share = row_share(row_weight, total)
    mean = torch.mul(share, x, out=buffer).sum(-2)
    variance = torch.sub(x, mean.unsqueeze(-2), out=buffer).square_().mul_(share).sum(-2)
    return mean, variance, total


def shared_moments(buffer: Tensor, x: Tensor, row_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The same over the rows of all processes."""
    weight = x.new_ones(x.shape[-2]) if row_weight is None else row_weight
    total_weight = all_reduce(weight.sum())
    share = row_share(weight, total_weight)
    mean = all_reduce(torch.mul(share, x, out=buffer).sum(-2))
    variance = all_reduce(torch.sub(x, mean.unsqueeze(-2), out=buffer).square_().mul_(share).sum(-2))
    return mean, variance, total_weight


def weighted_batch_norm(
    x: Tensor, row_weight: Tensor | None, scale: Tensor, shift: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """y [..., R, D], and μ, σ² [..., D], W of the batch; at least float32 inside."""
    x, scale, shift = widened(x), widened(scale), widened(shift)
    if under_transform() and not several_processes():
        return naive.weighted_batch_norm(x, row_weight, scale, shift, epsilon)
    return WeightedStandardisation.apply(x, row_weight, scale, shift, epsilon)
