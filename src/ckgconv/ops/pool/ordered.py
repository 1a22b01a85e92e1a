"""Pooling on a GPU in a fixed order, unlike atomic sums, where `triton` does not apply; the equation is in `naive`.

Torch's segmented sum has no second derivative. Pooling is linear, so its backward pass in plain operations has all.

Legend: G graphs, N nodes, D width.
"""

from typing import Any

import torch
from torch import Tensor

from ckgconv.ops.pool.naive import Pooling
from ckgconv.ops.precision import widened


def pool(x: Tensor, node_graph: Tensor, node_ptr: Tensor, pooling: Pooling) -> Tensor:
    """[G, D] from [N, D], at least float32; see `naive`."""
    summed = OrderedSum.apply(widened(x), node_graph, node_ptr)
    return summed if pooling == "sum" else summed / node_ptr.diff().clamp(min=1).unsqueeze(-1)


class OrderedSum(torch.autograd.Function):
    """Node features, graphs of nodes, pointers → sums over graphs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, node_graph: Tensor, node_ptr: Tensor) -> Tensor:
        ctx.save_for_backward(node_graph)
        return torch.segment_reduce(x, "sum", offsets=node_ptr, unsafe=True)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return on_nodes(gradient, ctx.saved_tensors[0]), None, None


def on_nodes(values: Tensor, node_graph: Tensor) -> Tensor:
    """[N, D] the values [G, D] of the graph of each node; zeros for padding, whose graph is G."""
    return torch.cat([values, values.new_zeros(1, values.shape[-1])]).index_select(0, node_graph)
