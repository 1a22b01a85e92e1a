"""Pooling as one Triton launch each way, two where graphs are large; the equation is in `naive`.

Legend: G graphs, N nodes, D width.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.derivatives import will_be_differentiated
from ckgconv.ops.launch import power_of_two
from ckgconv.ops.pool.naive import Pooling
from ckgconv.ops.pool.ordered import on_nodes

NODES = 64  # at once
# A graph of many nodes is summed in parts by several programs, and the parts in their order.
PART, MOST_PARTS = 512, 256


def pool(x: Tensor, node_graph: Tensor, node_ptr: Tensor, pooling: Pooling) -> Tensor:
    """[G, D] from float32 [N, D]; see `naive`."""
    return Pool.apply(x, node_graph, node_ptr, pooling)


class Pool(torch.autograd.Function):
    """Node features, graphs of nodes, pointers → features of graphs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, node_graph: Tensor, node_ptr: Tensor, pooling: Pooling) -> Tensor:
        node_graph, node_ptr = node_graph.contiguous(), node_ptr.contiguous()
        ctx.save_for_backward(node_graph, node_ptr)
        ctx.pooling = pooling
        return sums(x, node_ptr, pooling)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        node_graph, node_ptr = ctx.saved_tensors
        if will_be_differentiated(gradient):
            size = node_ptr.diff().clamp(min=1).unsqueeze(-1)
            pulled = gradient / size if ctx.pooling == "mean" else gradient
            return on_nodes(pulled, node_graph), None, None, None
        nodes, width = node_graph.shape[0], gradient.shape[1]
        pulled = gradient.new_empty(nodes, width)
        if nodes:
            spread[(-(-nodes // NODES),)](
                gradient.contiguous(), node_graph, node_ptr, pulled, nodes, len(gradient), width,
                MEAN=ctx.pooling == "mean", NODES=NODES, BLOCK_D=power_of_two(width),
            )  # fmt: skip
        return pulled, None, None, None


class Spread(torch.autograd.Function):
    """Values of graphs, graphs of nodes, pointers → values of nodes: the transpose of a sum."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, node_graph: Tensor, node_ptr: Tensor) -> Tensor:
        ctx.save_for_backward(node_graph, node_ptr)
        return values.index_select(0, node_graph)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        node_graph, node_ptr = ctx.saved_tensors
        if will_be_differentiated(gradient):
            zeros = gradient.new_zeros(node_ptr.shape[0] - 1, gradient.shape[-1])
            return zeros.index_add(0, node_graph, gradient), None, None
        return sums(gradient.float(), node_ptr).to(gradient.dtype), None, None


def sums(x: Tensor, node_ptr: Tensor, pooling: Pooling = "sum") -> Tensor:
    """[G, D] from float32 [N, D], in a fixed order."""
    x, (nodes, width), graphs = x.contiguous(), x.shape, node_ptr.shape[0] - 1
    parts = min(max(nodes // (PART * max(graphs, 1)), 1), MOST_PARTS)
    y = x.new_empty(graphs, parts, width)
    if graphs:
        options = {"MEAN": pooling == "mean", "NODES": NODES, "BLOCK_D": power_of_two(width)}
        gather[(graphs, parts)](x, node_ptr.contiguous(), y, width, **options)
    return y[:, 0] if parts == 1 else y.sum(1)


@triton.jit
def gather(x, node_ptr, y, width, MEAN: tl.constexpr, NODES: tl.constexpr, BLOCK_D: tl.constexpr):
    """A program sums its part of the nodes of its graph."""
    graph, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    first, last = tl.load(node_ptr + graph).to(tl.int32), tl.load(node_ptr + graph + 1).to(tl.int32)
    share = tl.cdiv(last - first, parts)
    begin = first + part * share
    end = tl.minimum(begin + share, last)
    columns = tl.arange(0, BLOCK_D)
    total = tl.zeros([NODES, BLOCK_D], tl.float32)
    for start in range(begin, end, NODES):
        node = start + tl.arange(0, NODES)
        inside = (node < end)[:, None] & (columns < width)[None, :]
        total += tl.load(x + node[:, None] * width + columns[None, :], mask=inside, other=0.0)
    summed = tl.sum(total, axis=0)
    if MEAN:
        summed = summed / tl.maximum(last - first, 1).to(tl.float32)
    tl.store(y + (graph * parts + part) * width + columns, summed, mask=columns < width)


@triton.jit
def spread(
    g, node_graph, node_ptr, pulled, nodes, graphs, width, MEAN: tl.constexpr, NODES: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each node receives the gradient of its graph; padding receives zeros."""
    node = tl.program_id(0) * NODES + tl.arange(0, NODES)
    columns = tl.arange(0, BLOCK_D)
    graph = tl.load(node_graph + node, mask=node < nodes, other=graphs)
    there = graph < graphs
    inside = there[:, None] & (columns < width)[None, :]
    values = tl.load(g + graph[:, None] * width + columns[None, :], mask=inside, other=0.0)
    if MEAN:
        size = tl.load(node_ptr + graph + 1, mask=there, other=1) - tl.load(node_ptr + graph, mask=there, other=0)
        values = values / tl.maximum(size, 1).to(tl.float32)[:, None]
    tl.store(
        pulled + node[:, None] * width + columns[None, :],
        values,
        mask=(node < nodes)[:, None] & (columns < width)[None, :],
    )
