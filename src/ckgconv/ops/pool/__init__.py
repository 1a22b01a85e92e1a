"""Sums or means over the nodes of each graph, in a fixed order: one launch each way on a GPU."""

from torch import Tensor

from ckgconv.ops.fused import fits, fused
from ckgconv.ops.pool import naive
from ckgconv.ops.pool.naive import Pooling


def pool(x: Tensor, node_graph: Tensor, node_ptr: Tensor, pooling: Pooling) -> Tensor:
    """[G, D] from [N, D]; see `naive`."""
    if fused(x) and fits(x, *x.shape):
        from ckgconv.ops.pool import triton

        return triton.pool(x.float(), node_graph, node_ptr, pooling)
    return naive.pool(x, node_graph, node_ptr, pooling)


__all__ = ["Pooling", "pool"]
