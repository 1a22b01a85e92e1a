"""Attention with a bias for each pair over the nodes of each graph, one launch each way; see `attention_kernels`.

Legend: N nodes, P pairs, G graphs, D width, H heads of C channels.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass.attention_kernels import attend, attend_backward
from ckgconv.backends.cuda.block_pass.options import dropout_arguments
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import pitch, product_precision, tile_width

ROWS = 32  # nodes of a tile: most molecules have fewer
DRAW = 2  # which mask of a seed: 0 and 1 are those of what follows in the block


class Graphs(NamedTuple):
    """Graphs all of whose pairs are stored."""

    node_ptr: Tensor  # [G + 1] where the nodes of each graph begin
    rowptr: Tensor  # [N + 1] the first pair of each receiver


def attention_options(width: int, heads: int, precision: str) -> dict[str, Any]:
    """What both directions are compiled for, without a bias."""
    channels = width // heads
    sizes = {"D": width, "C": channels, "HEADS": tile_width(heads), "BLOCK_R": ROWS, "BLOCK_C": tile_width(channels)}
    return {**sizes, "BIAS_PITCH": 0, "root_scale": channels**-0.5, "PRECISION": precision, "num_stages": 1}


def graph_attention(qkv: Tensor, bias: Tensor, graphs: Graphs, heads: int, dropout: float, seed: Tensor) -> Tensor:
    """Σ_j α_ij v_j [N, D] of queries, keys and values [N, 3 D] and biases [P, H].

    `dropout` is that of the weights, by masks of the seed [1]. Nodes of no graph have zeros, and zero gradients.
    """
    return GraphAttention.apply(qkv, bias, graphs, heads, dropout, seed)


class GraphAttention(torch.autograd.Function):
    """Queries, keys and values, biases, graphs, heads, dropout and seed → y."""

    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, bias: Tensor, graphs: Graphs, heads: int, dropout: float, seed: Tensor
    ) -> Tensor:
        # A slice of a wider kernel is copied, since the gradient below is as wide as rows of the biases are apart.
        near = bias.stride(1) == 1 and bias.stride(0) <= pitch(heads)
        qkv, bias = qkv.contiguous(), bias if near else bias.contiguous()
        nodes, width = qkv.shape[0], qkv.shape[1] // 3
        ctx.options = attention_options(width, heads, product_precision())
        ctx.options |= {**dropout_arguments(dropout, DRAW), "BIAS_PITCH": bias.stride(0), "num_warps": 4}
        # Zero in padding, like the gradients below: products over all rows follow.
        y, highest = qkv.new_zeros(nodes, width), qkv.new_empty(nodes, tile_width(heads))
        attend[(len(graphs.node_ptr) - 1, heads)](qkv, bias, *graphs, y, highest, seed, **ctx.options)
        ctx.save_for_backward(qkv, bias, *graphs, y, highest, seed)
        ctx.heads = heads
        return y

    @staticmethod
    @first_derivatives_only("the attention of a hybrid on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        qkv, bias, node_ptr, rowptr, y, highest, seed = ctx.saved_tensors
        at_qkv, at_bias = torch.zeros_like(qkv), bias.new_zeros(bias.shape[0], bias.stride(0))
        attend_backward[(len(node_ptr) - 1, ctx.heads)](
            qkv, bias, y, gradient.contiguous(), node_ptr, rowptr, highest, at_qkv, at_bias, seed, **ctx.options
        )
        return at_qkv, at_bias[:, : bias.shape[1]], None, None, None, None
