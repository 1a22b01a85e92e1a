"""Messages along edges as autograd functions; the Triton kernels are in `kernels`.

Legend: N nodes, E edges, D width.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.message_pass.kernels import (
    gated_receiver_backward,
    gated_sender_backward,
    gated_sum,
    rectified_backward,
    rectified_sum,
)
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import power_of_two
from ckgconv.ops.rows import Order, order_of

ROWS = 8  # edges of a tile: atoms have at most four, pixels eight


class Links(NamedTuple):
    """Edges by their two ends."""

    sender: Tensor  # [E]
    receiver: Tensor  # [E]
    by_sender: Order
    by_receiver: Order
    filled: Tensor  # [1] nodes from there on are padding, whose edges carry nothing


def links_of(edge_index: Tensor, nodes: int, filled: Tensor | None) -> Links:
    """The edges [2, E], senders above receivers, in both orders; all nodes are real where `filled` is None."""
    sender, receiver = edge_index
    filled = torch.full((1,), nodes, device=sender.device) if filled is None else filled
    return Links(sender, receiver, order_of(sender, nodes), order_of(receiver, nodes), filled)


def rectified_messages(h: Tensor, edges: Tensor, links: Links) -> Tensor:
    """Σ_j ReLU(h_j + e_ij) [N, D] of h [N, D] and edges [E, D]."""
    return Rectified.apply(h, edges, links)


def gated_messages(
    edges: Tensor, sender: Tensor, receiver: Tensor, values: Tensor, links: Links, epsilon: float
) -> tuple[Tensor, Tensor]:
    """y [N, D] and s [E, D] of c [E, D] and d, r, b [N, D]."""
    return Gated.apply(edges, sender, receiver, values, links, epsilon)


def constants(width: int) -> dict[str, int]:
    """What all kernels are compiled for."""
    return {"D": width, "BLOCK_R": ROWS, "BLOCK_D": power_of_two(width), "num_warps": 2}


class Rectified(torch.autograd.Function):
    """h, e, links → y."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, edges: Tensor, links: Links) -> Tensor:
        h, edges, width = h.contiguous(), edges.contiguous(), h.shape[1]
        y = torch.empty(h.shape, dtype=torch.float32, device=h.device)
        if len(h):
            rectified_sum[(len(h),)](h, edges, *links.by_receiver, links.filled, links.sender, y, **constants(width))
        ctx.save_for_backward(h, edges)
        ctx.links = links
        return y

    @staticmethod
    @first_derivatives_only("the message pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        h, edges = ctx.saved_tensors
        links, width = ctx.links, h.shape[1]
        gh, ge = torch.empty_like(h), torch.zeros_like(edges)
        if len(h):
            rectified_backward[(len(h),)](
                h,
                edges,
                gradient.contiguous(),
                *links.by_sender,
                links.filled,
                links.receiver,
                gh,
                ge,
                **constants(width),
            )
        return gh, ge, None


class Gated(torch.autograd.Function):
    """c, d, r, b, links, ε → y, s."""

    @staticmethod
    def forward(
        ctx: Any, edges: Tensor, sender: Tensor, receiver: Tensor, values: Tensor, links: Links, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        edges, sender, receiver, values = (each.contiguous() for each in (edges, sender, receiver, values))
        nodes, width = values.shape
        # Padding edges are not written: their zeros are read by the norm of the edges.
        state = torch.zeros(edges.shape, dtype=torch.float32, device=edges.device)
        y, total = state.new_empty(2, nodes, width)
        if nodes:
            gated_sum[(nodes,)](
                edges, sender, receiver, values, *links.by_receiver, links.filled, links.sender, state, y, total,
                epsilon, **constants(width),
            )  # fmt: skip
        ctx.save_for_backward(state, values, y, total)
        ctx.links = links
        ctx.set_materialize_grads(False)
        return y, state

    @staticmethod
    @first_derivatives_only("the message pass on a GPU")
    def backward(ctx: Any, gradient: Tensor | None, g_state: Tensor | None) -> tuple[Tensor | None, ...]:
        state, values, y, total = ctx.saved_tensors
        links, (nodes, width) = ctx.links, values.shape
        gradient = torch.zeros_like(y) if gradient is None else gradient.contiguous()
        gs = torch.zeros_like(state)
        gr, gd, gb = state.new_empty(3, nodes, width)
        if nodes:
            gated_receiver_backward[(nodes,)](
                state, values, y, total, gradient, None if g_state is None else g_state.contiguous(),
                *links.by_receiver, links.filled, links.sender, gs, gr, **constants(width),
            )  # fmt: skip
            gated_sender_backward[(nodes,)](
                state, total, gradient, gs, *links.by_sender, links.filled, links.receiver, gd, gb, **constants(width)
            )
        return gs, gd, gr, gb, None, None
