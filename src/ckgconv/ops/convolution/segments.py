"""Scaled depthwise convolution on a CPU, its backward written out; the equation is in `naive`.

    ∂x_j = Σ_{i: j ∈ supp(i)} ψ_ij ⊙ g_i/|supp(i)|        ∂ψ_ij = x_j ⊙ g_i/|supp(i)|

Pairs are sorted by receiver, so the sum over a support is a sum over consecutive rows: torch's embedding bag computes
it several times faster than `index_add`. Where all channels share a coefficient, the embedding bag weighs the rows of
x itself, and no message is formed. Higher derivatives are those of `naive`.

Legend: N nodes, P stored pairs, D channels.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.convolution import naive
from ckgconv.ops.derivatives import specification_gradients, will_be_differentiated


def scaled_convolution(
    x: Tensor, psi: Tensor, receiver: Tensor, sender: Tensor, support_size: Tensor, rowptr: Tensor
) -> Tensor:
    """y [N, D] as `naive`; rows rowptr[i] … rowptr[i + 1] - 1 belong to receiver i."""
    return SegmentConvolution.apply(x, psi, receiver, sender, support_size, rowptr)


class SegmentConvolution(torch.autograd.Function):
    """x, ψ, receiver, sender, support sizes, row pointers → y."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, psi: Tensor, receiver: Tensor, sender: Tensor, support_size: Tensor, rowptr: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, psi, receiver, sender, support_size)
        if psi.shape[1] == 1:
            weight = psi / divisor(support_size).index_select(0, receiver)
            return weighted_sums(x, weight.squeeze(1), sender, rowptr)
        return row_sums(x.index_select(0, sender).mul_(psi), rowptr).div_(divisor(support_size))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, psi, receiver, sender, support_size = ctx.saved_tensors
        if will_be_differentiated(gradient):
            needed = ctx.needs_input_grad[:2]
            formula = partial(naive.scaled_convolution, receiver=receiver, sender=sender, support_size=support_size)
            found = specification_gradients(formula, (x, psi), needed, gradient)
            return *found, None, None, None, None
        pulled = (gradient / divisor(support_size)).index_select(0, receiver)
        gradient_x = gradient_psi = None
        if ctx.needs_input_grad[1]:
            gradient_psi = x.index_select(0, sender).mul_(pulled).sum_to_size(psi.shape)
        if ctx.needs_input_grad[0]:
            gradient_x = torch.zeros_like(x).index_add_(0, sender, pulled.mul_(psi))
        return gradient_x, gradient_psi, None, None, None, None


def row_sums(values: Tensor, rowptr: Tensor, rows: Tensor | None = None) -> Tensor:
    """[N, D] sums of the rows [P, D], taken in the order `rows`, between consecutive pointers [N + 1]."""
    if values.shape[0] == 0:
        return values.new_zeros(rowptr.shape[0] - 1, values.shape[1])
    rows = torch.arange(values.shape[0]) if rows is None else rows
    return F.embedding_bag(rows, values, rowptr, mode="sum", include_last_offset=True)


def weighted_sums(x: Tensor, weight: Tensor, sender: Tensor, rowptr: Tensor) -> Tensor:
    """[N, D] sums of the rows of x [N, D] that are named by sender [P], times weight [P], between pointers [N + 1]."""
    if sender.shape[0] == 0:
        return x.new_zeros(rowptr.shape[0] - 1, x.shape[1])
    return F.embedding_bag(sender, x, rowptr, mode="sum", per_sample_weights=weight, include_last_offset=True)


def divisor(support_size: Tensor) -> Tensor:
    """[N, 1] |supp(i)|; an empty support sums to 0 whatever divides it."""
    return support_size.clamp(min=1).unsqueeze(-1)
