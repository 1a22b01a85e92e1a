"""Pooling as the equation reads.

    y_g = Σ_{i in g} x_i,  or the same divided by the number of nodes

Legend: G graphs, N nodes, D width.
"""

from typing import Literal

import torch
from torch import Tensor

from ckgconv.ops.precision import widened

Pooling = Literal["sum", "mean"]


def pool(x: Tensor, node_graph: Tensor, node_ptr: Tensor, pooling: Pooling) -> Tensor:
    """[G, D] from [N, D]; a graph without nodes has zeros; at least float32.

    Args:
        node_graph: [N] int64, the graph of each node; G for padding, which lies behind the last graph.
        node_ptr: [G + 1] int64, where the nodes of each graph begin.
    """
    x = widened(x)
    if x.is_cuda:
        # In a fixed order, unlike atomic sums.
        summed = torch.segment_reduce(x, "sum", offsets=node_ptr, unsafe=True)
    else:
        summed = x.new_zeros(node_ptr.shape[0], x.shape[1]).index_add(0, node_graph, x)[:-1]
    return summed if pooling == "sum" else summed / node_ptr.diff().clamp(min=1).unsqueeze(-1)
