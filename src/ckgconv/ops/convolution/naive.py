"""Scaled depthwise convolution (Eq. 4 before W, b), as the equation reads.

    y_i = 1/|supp(i)| Σ_{j ∈ supp(i)} x_j ⊙ ψ_ij

and, where only the pairs j ∈ S_i are stored and all others share the coefficient ψ⁰_i,

    y_i = 1/|supp(i)| [ Σ_{j ∈ S_i} x_j ⊙ (ψ_ij - ψ⁰_i) + ψ⁰_i ⊙ Σ_{j ∈ graph} x_j ].

Sums are at least float32; y has the dtype of x ⊙ ψ.

Legend: N nodes, P stored pairs, D channels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.ops.precision import widened


class SenderLists(NamedTuple):
    """The pairs in order of their senders: what a gather reads in the backward pass."""

    pointer: Tensor  # [N + 1] sender j owns entries pointer[j] … pointer[j + 1] - 1 of the two lists below
    rows: Tensor  # [P] rows whose sender is j
    receiver: Tensor  # [P] their receivers


class Graphs(NamedTuple):
    """The graph of each node, and where the nodes of each begin, which a GPU needs."""

    node_graph: Tensor  # [N]
    graph_ptr: Tensor | None = None  # [G + 1]


def scaled_convolution(x: Tensor, psi: Tensor, receiver: Tensor, sender: Tensor, support_size: Tensor) -> Tensor:
    """y [N, D] from x [N, D], ψ [P, D], or [P, 1] for all channels; receiver, sender [P]; support_size [N].

    Empty supports give 0.
    """
    messages = widened(x).index_select(0, sender) * widened(psi)
    summed = messages.new_zeros(x.shape).index_add(0, receiver, messages)
    return (summed / support_size.clamp(min=1).unsqueeze(-1)).to(torch.promote_types(x.dtype, psi.dtype))


def sparse_global_convolution(
    x: Tensor, psi: Tensor, background: Tensor, receiver: Tensor, sender: Tensor, support_size: Tensor, graph: Tensor
) -> Tensor:
    """y [N, D] over whole graphs, with ψ⁰ = background [N, D] for the pairs not stored; graph [N] of each node."""
    dtype = torch.promote_types(x.dtype, psi.dtype)
    x, psi, background = widened(x), widened(psi), widened(background)
    total = x.new_zeros(x.shape).index_add(0, graph, x).index_select(0, graph)
    messages = x.index_select(0, sender) * (psi - background.index_select(0, receiver))
    summed = messages.new_zeros(x.shape).index_add(0, receiver, messages)
    return ((summed + background * total) / support_size.unsqueeze(-1)).to(dtype)
