"""Scaled depthwise convolution over a support; `naive` is the specification of `segments` and `triton`."""

import torch
from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.convolution import naive, segments
from ckgconv.ops.convolution.naive import SenderLists
from ckgconv.ops.dispatch import fits


def scaled_convolution(
    x: Tensor,
    psi: Tensor,
    receiver: Tensor,
    sender: Tensor,
    support_size: Tensor,
    rowptr: Tensor | None = None,
    by_sender: SenderLists | None = None,
) -> Tensor:
    """y [N, D] as `naive`.

    Where `rowptr` [N + 1] is given, rows are sorted by receiver and a CPU sums them in turn; a GPU needs the lists by
    sender too.
    """
    if rowptr is not None and by_sender is not None and _runs_fused(x, psi):
        from ckgconv.ops.convolution import triton

        return triton.scaled_convolution(x, psi, support_size, triton.Lists(rowptr, receiver, sender, by_sender))
    by_rows = rowptr is not None and x.device.type == "cpu" and x.dtype == psi.dtype in (torch.float32, torch.float64)
    if not by_rows or torch.compiler.is_compiling():
        return naive.scaled_convolution(x, psi, receiver, sender, support_size)
    assert rowptr is not None
    return segments.scaled_convolution(x, psi, receiver, sender, support_size, rowptr)


def sparse_global_convolution(
    x: Tensor,
    psi: Tensor,
    background: Tensor,
    receiver: Tensor,
    sender: Tensor,
    support_size: Tensor,
    node_graph: Tensor,
    graph_ptr: Tensor | None = None,
    rowptr: Tensor | None = None,
    by_sender: SenderLists | None = None,
) -> Tensor:
    """y [N, D] as `naive`; a GPU takes the lists and `graph_ptr` [G + 1], where the nodes of each graph begin."""
    if graph_ptr is not None and rowptr is not None and by_sender is not None and _runs_fused(x, psi):
        from ckgconv.ops.convolution import triton

        lists, graphs = triton.Lists(rowptr, receiver, sender, by_sender), triton.Graphs(node_graph, graph_ptr)
        return triton.sparse_global_convolution(x, psi, background, support_size, lists, graphs)
    return naive.sparse_global_convolution(x, psi, background, receiver, sender, support_size, node_graph)


def _runs_fused(x: Tensor, psi: Tensor) -> bool:
    rows, width = max(x.shape[0], psi.shape[0]), max(psi.stride(0), x.shape[1])
    return dispatch.uses_triton(x) and dispatch.uses_triton(psi) and fits(x, rows, width)


__all__ = ["SenderLists", "scaled_convolution", "sparse_global_convolution"]
