"""Softmax of the kernel over the support of each receiver, as the equation reads.

    a_ij = exp(ψ_ij) / Σ_{j' ∈ supp(i)} exp(ψ_ij')

Sums are at least float32; a has the dtype of ψ.

Legend: N nodes, P stored pairs, D channels.
"""

import torch
from torch import Tensor

from ckgconv.ops.precision import widened


def support_softmax(psi: Tensor, receiver: Tensor, num_nodes: int) -> Tensor:
    """[P, D] → [P, D], summing to one over the pairs of each receiver."""
    dtype, psi = psi.dtype, widened(psi)
    highest = _highest(psi, receiver, num_nodes)
    exponential = torch.exp(psi - highest.index_select(0, receiver))
    total = psi.new_zeros(num_nodes, psi.shape[1]).index_add(0, receiver, exponential)
    return (exponential / total.index_select(0, receiver)).to(dtype)


def summing_softmax(psi: Tensor, receiver: Tensor, support_size: Tensor) -> Tensor:
    """|supp(i)| a_ij, [P, D] → [P, D]: under the convolution's mean this is the sum aggregation."""
    return (
        support_softmax(widened(psi), receiver, support_size.shape[0])
        * support_size.index_select(0, receiver).unsqueeze(-1)
    ).to(psi.dtype)


def sparse_global_softmax(
    psi: Tensor, background: Tensor, receiver: Tensor, support_size: Tensor
) -> tuple[Tensor, Tensor]:
    """The same where |supp(i)| - |stored| pairs of receiver i share background [N, D]: ([P, D], [N, D])."""
    dtype, psi, background = psi.dtype, widened(psi), widened(background)
    num_nodes = background.shape[0]
    stored = psi.new_zeros(num_nodes).index_add(0, receiver, psi.new_ones(psi.shape[0]))
    missing = (support_size - stored).unsqueeze(-1)
    # A background that stands for no pair counts nowhere, not even in the shift.
    background = torch.where(missing > 0, background, -torch.inf)
    highest = torch.maximum(_highest(psi, receiver, num_nodes), background.detach())
    exponential = torch.exp(psi - highest.index_select(0, receiver))
    others = torch.exp(background - highest)
    total = torch.zeros_like(background).index_add(0, receiver, exponential) + missing * others
    return (exponential / total.index_select(0, receiver)).to(dtype), (others / total).to(dtype)


def _highest(psi: Tensor, receiver: Tensor, num_nodes: int) -> Tensor:
    """[N, D] largest value of each receiver: a constant shift, so it carries no gradient."""
    index = receiver.unsqueeze(-1).expand_as(psi)
    lowest = psi.new_full((num_nodes, psi.shape[1]), -torch.inf)
    return lowest.scatter_reduce(0, index, psi.detach(), "amax")
