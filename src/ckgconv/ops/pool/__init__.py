"""Sums or means over the nodes of each graph, and their transpose, in few launches with a fixed order of summation."""

from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.derivatives import under_transform
from ckgconv.ops.dispatch import fits
from ckgconv.ops.pool import naive, ordered
from ckgconv.ops.pool.naive import Pooling


def pool(x: Tensor, node_graph: Tensor, node_ptr: Tensor, pooling: Pooling) -> Tensor:
    """[G, D] from [N, D]; see `naive`."""
    if dispatch.uses_triton(x) and fits(x, *x.shape):
        from ckgconv.ops.pool import triton

        return triton.pool(x.float(), node_graph, node_ptr, pooling)
    if x.is_cuda and not under_transform():
        return ordered.pool(x, node_graph, node_ptr, pooling)
    return naive.pool(x, node_graph, node_ptr, pooling)


def spread(values: Tensor, node_graph: Tensor, node_ptr: Tensor) -> Tensor:
    """[N, D] the values [G, D] of the graph of each node; every node has one."""
    if dispatch.uses_triton(values) and fits(values, node_graph.shape[0], values.shape[1]):
        from ckgconv.ops.pool import triton

        return triton.Spread.apply(values, node_graph, node_ptr)
    return values[node_graph]


__all__ = ["Pooling", "pool", "spread"]
