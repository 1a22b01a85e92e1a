"""All blocks of a network over its nodes (Eqs. 4, 7 and 9) as the equations read, with the kernels given.

    y_i = 1/|supp(i)| Σ_{j ∈ supp(i)} x_j ⊙ ψ_ij
    u   = BN( x + drop( W (y ⊙ θ₁ + √d y ⊙ θ₂) + b ) )
    x'  = BN( u + drop( W₂ GELU(W₁ u + b₁) + b₂ ) )

Legend: L blocks, N nodes, P pairs, D width, H hidden width of the feed-forward network.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.batch_norm.naive import weighted_batch_norm
from ckgconv.ops.convolution.naive import scaled_convolution


class Block(NamedTuple):
    """Parameters of one block."""

    theta1: Tensor  # [D]
    theta2: Tensor  # [D]
    weight: Tensor  # [D, D] W
    bias: Tensor  # [D]
    scale: Tensor  # [D] of the norm behind the convolution
    shift: Tensor  # [D]
    weight_in: Tensor  # [H, D] W₁
    bias_in: Tensor  # [H]
    weight_out: Tensor  # [D, H] W₂
    bias_out: Tensor  # [D]
    scale_out: Tensor  # [D] of the norm behind the feed-forward network
    shift_out: Tensor  # [D]


class Lists(NamedTuple):
    """The support as lists over receivers and over senders: what a gather needs in either direction."""

    rowptr: Tensor  # [N + 1] receiver i owns rows rowptr[i] … rowptr[i + 1] - 1
    sender: Tensor  # [P]
    sender_ptr: Tensor  # [N + 1] sender j owns entries sender_ptr[j] … sender_ptr[j + 1] - 1 of the two lists below
    sender_rows: Tensor  # [P] rows whose sender is j
    sender_receiver: Tensor  # [P] their receivers
    support_size: Tensor  # [N] floating
    degree: Tensor  # [N] floating


Drop = Callable[[Tensor, int], Tensor]  # values and their number, 2l and 2l + 1 in block l → values


def node_pass(
    x: Tensor,
    psi: Tensor,
    lists: Lists,
    blocks: Sequence[Block],
    node_weight: Tensor | None,
    drop: Drop,
    epsilon: float,
) -> tuple[Tensor, Tensor]:
    """x [N, D], ψ [L, P, D] → x' of the last block [N, D], and the moments [L, 2, 3, D] (W, μ, σ²) of both norms."""
    moments: list[Tensor] = []
    receiver = torch.arange(x.shape[0], device=x.device).repeat_interleave(lists.rowptr.diff())
    root_degree = lists.degree.sqrt().unsqueeze(-1)
    for number, (block, kernel) in enumerate(zip(blocks, psi, strict=True)):
        y = scaled_convolution(x, kernel, receiver, lists.sender, lists.support_size)
        y = F.linear(y * block.theta1 + root_degree * y * block.theta2, block.weight, block.bias)
        u, *first = weighted_batch_norm(x + drop(y, 2 * number), node_weight, block.scale, block.shift, epsilon)
        hidden = F.gelu(F.linear(u, block.weight_in, block.bias_in))
        y = drop(F.linear(hidden, block.weight_out, block.bias_out), 2 * number + 1)
        x, *second = weighted_batch_norm(u + y, node_weight, block.scale_out, block.shift_out, epsilon)
        for mean, variance, total in (first, second):
            moments.append(torch.stack([total.expand_as(mean), mean, variance]))
    return x, torch.stack(moments).view(len(blocks), 2, 3, -1)
