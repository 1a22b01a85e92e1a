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


class EdgeOrders(NamedTuple):
    """Edges by their two ends."""

    sender: Tensor  # [E]
    receiver: Tensor  # [E]
    by_sender: Order
    by_receiver: Order
    filled: Tensor  # [1] nodes from there on are padding, whose edges carry nothing


def edge_orders(edge_index: Tensor, filled: Tensor, nodes: int) -> EdgeOrders:
    """The edges [2, E], senders above receivers, in both orders; nodes from `filled` [1] on are padding."""
    sender, receiver = edge_index
    return EdgeOrders(sender, receiver, order_of(sender, nodes), order_of(receiver, nodes), filled)


def rectified_messages(h: Tensor, edges: Tensor, orders: EdgeOrders) -> Tensor:
    """Σ_j ReLU(h_j + e_ij) [N, D] of h [N, D] and edges [E, D]."""
    return Rectified.apply(h, edges, orders)


def gated_messages(
    edges: Tensor, sender: Tensor, receiver: Tensor, values: Tensor, orders: EdgeOrders, epsilon: float
) -> tuple[Tensor, Tensor]:
    """y [N, D] and s [E, D] of c [E, D] and d, r, b [N, D]."""
    return Gated.apply(edges, sender, receiver, values, orders, epsilon)


def constants(width: int) -> dict[str, int]:
    """What all kernels are compiled for."""
    return {"D": width, "BLOCK_R": ROWS, "BLOCK_D": power_of_two(width), "num_warps": 2}


class Rectified(torch.autograd.Function):
    """h, e, orders → y."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, edges: Tensor, orders: EdgeOrders) -> Tensor:
        h, edges, width = h.contiguous(), edges.contiguous(), h.shape[1]
        y = torch.empty(h.shape, dtype=torch.float32, device=h.device)
        if len(h):
            rectified_sum[(len(h),)](h, edges, *orders.by_receiver, orders.filled, orders.sender, y, **constants(width))
        ctx.save_for_backward(h, edges)
        ctx.orders = orders
        return y

    @staticmethod
    @first_derivatives_only("the message pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        h, edges = ctx.saved_tensors
        orders, width = ctx.orders, h.shape[1]
        gh, ge = torch.empty_like(h), torch.zeros_like(edges)
        if len(h):
            rectified_backward[(len(h),)](
                h, edges, gradient.contiguous(), *orders.by_sender, orders.filled, orders.receiver, gh, ge,
                **constants(width),
            )  # fmt: skip
        return gh, ge, None


class Gated(torch.autograd.Function):
    """c, d, r, b, orders, ε → y, s."""

    @staticmethod
    def forward(
        ctx: Any, edges: Tensor, sender: Tensor, receiver: Tensor, values: Tensor, orders: EdgeOrders, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        edges, sender, receiver, values = (each.contiguous() for each in (edges, sender, receiver, values))
        nodes, width = values.shape
        # Padding edges are not written: their zeros are read by the norm of the edges.
        state = torch.zeros(edges.shape, dtype=torch.float32, device=edges.device)
        y, total = state.new_empty(2, nodes, width)
        if nodes:
            gated_sum[(nodes,)](
                edges, sender, receiver, values, *orders.by_receiver, orders.filled, orders.sender, state, y, total,
                epsilon, **constants(width),
            )  # fmt: skip
        ctx.save_for_backward(state, values, y, total)
        ctx.orders = orders
        ctx.set_materialize_grads(False)
        return y, state

    @staticmethod
    @first_derivatives_only("the message pass on a GPU")
    def backward(ctx: Any, gradient: Tensor | None, g_state: Tensor | None) -> tuple[Tensor | None, ...]:
        state, values, y, total = ctx.saved_tensors
        orders, (nodes, width) = ctx.orders, values.shape
        gradient = torch.zeros_like(y) if gradient is None else gradient.contiguous()
        gs = torch.zeros_like(state)
        gr, gd, gb = state.new_empty(3, nodes, width)
        if nodes:
            gated_receiver_backward[(nodes,)](
                state, values, y, total, gradient, None if g_state is None else g_state.contiguous(),
                *orders.by_receiver, orders.filled, orders.sender, gs, gr, **constants(width),
            )  # fmt: skip
            gated_sender_backward[(nodes,)](
                state,
                total,
                gradient,
                gs,
                *orders.by_sender,
                orders.filled,
                orders.receiver,
                gd,
                gb,
                **constants(width),
            )
        return gs, gd, gr, gb, None, None
