"""Scaled depthwise convolution over a support; `naive` is the specification of `segments` and `triton`."""

from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.convolution import naive, segments
from ckgconv.ops.convolution.naive import Graphs, SenderLists
from ckgconv.ops.derivatives import under_transform
from ckgconv.ops.dispatch import fits
from ckgconv.ops.precision import wide_dtype


class Orders(NamedTuple):
    """The orders of the pairs that are known: a CPU sums rows sorted by receiver, a GPU needs both orders."""

    rowptr: Tensor | None = None  # [N + 1] receiver i owns rows rowptr[i] … rowptr[i + 1] - 1
    by_sender: SenderLists | None = None


NO_ORDERS = Orders()


def scaled_convolution(
    x: Tensor, psi: Tensor, receiver: Tensor, sender: Tensor, support_size: Tensor, orders: Orders = NO_ORDERS
) -> Tensor:
    """y [N, D] as `naive`."""
    rowptr, by_sender = orders
    if rowptr is not None and by_sender is not None and _uses_triton(x, psi):
        from ckgconv.ops.convolution import triton

        every = psi if psi.shape[1] == x.shape[1] else psi.expand(-1, x.shape[1]).contiguous()
        return triton.scaled_convolution(x, every, support_size, triton.Lists(rowptr, receiver, sender, by_sender))
    if rowptr is None or x.device.type != "cpu" or under_transform() or torch.compiler.is_compiling():
        return naive.scaled_convolution(x, psi, receiver, sender, support_size)
    dtype = torch.promote_types(x.dtype, psi.dtype)
    x, psi = x.to(wide_dtype(dtype)), psi.to(wide_dtype(dtype))
    return segments.scaled_convolution(x, psi, receiver, sender, support_size, rowptr).to(dtype)


def sparse_global_convolution(
    x: Tensor,
    psi: Tensor,
    background: Tensor,
    receiver: Tensor,
    sender: Tensor,
    support_size: Tensor,
    graphs: Graphs,
    orders: Orders = NO_ORDERS,
) -> Tensor:
    """y [N, D] as `naive`."""
    rowptr, by_sender = orders
    if graphs.graph_ptr is not None and rowptr is not None and by_sender is not None and _uses_triton(x, psi):
        from ckgconv.ops.convolution import triton

        lists = triton.Lists(rowptr, receiver, sender, by_sender)
        return triton.sparse_global_convolution(x, psi, background, support_size, lists, graphs)
    return naive.sparse_global_convolution(x, psi, background, receiver, sender, support_size, graphs.node_graph)


def _uses_triton(x: Tensor, psi: Tensor) -> bool:
    rows, width = max(x.shape[0], psi.shape[0]), max(psi.stride(0), x.shape[1])
    return dispatch.uses_triton(x) and dispatch.uses_triton(psi) and fits(x, rows, width)


__all__ = ["Graphs", "Orders", "SenderLists", "scaled_convolution", "sparse_global_convolution"]
