"""All blocks of GPS with GINE layers, eight launches per block; `nn.message_passing` is the specification.

    t = x + drop(MLP((1 + ε) x_i + Σ_j ReLU(x_j + e_ij)))
    w = x + drop(O y + b)                  y = attention over all nodes of a graph, see `attention_kernels`
    u = BN(t) + BN(w)                      and the feed-forward network of `gine`

Legend: L blocks, N nodes, E edges, G graphs, D width, H heads of C channels.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass import gine
from ckgconv.backends.cuda.block_pass.attention import attention_options
from ckgconv.backends.cuda.block_pass.attention_kernels import attend, attend_backward
from ckgconv.backends.cuda.block_pass.function import Directions, Operands, run_blocks
from ckgconv.backends.cuda.block_pass.gine_kernels import forward_output
from ckgconv.backends.cuda.block_pass.gradients import Factors, Matrices
from ckgconv.backends.cuda.block_pass.options import Settings, dropout_arguments
from ckgconv.ops.launch import tile_width


class Block(NamedTuple):
    """Parameters of one block: those of `gine.Block`, then those of the attention."""

    share: Tensor
    weight1: Tensor
    bias1: Tensor
    weight2: Tensor
    bias2: Tensor
    scale: Tensor
    shift: Tensor
    weight_in: Tensor
    bias_in: Tensor
    weight_out: Tensor
    bias_out: Tensor
    scale_out: Tensor
    shift_out: Tensor
    projection: Tensor  # [3 D, D] to queries, keys and values
    projection_bias: Tensor  # [3 D]
    weight_y: Tensor  # [D, D] O
    bias_y: Tensor  # [D]
    scale_y: Tensor  # [D] of the norm of w
    shift_y: Tensor  # [D]


class Attention(NamedTuple):
    """What has no gradient."""

    node_ptr: Tensor  # [G + 1] where the nodes of each graph begin
    rowptr: Tensor  # [N + 1] the first pair of each receiver
    heads: int
    dropout: float  # of the weights


class PassSettings(NamedTuple):
    """Settings of the pass."""

    nodes: Settings
    heads: int
    dropout: float  # of the weights


class KeptAttention(NamedTuple):
    """What the backward pass reads next to `gine.Kept`."""

    narrow: Tensor  # [3, L, N, D] x, y, w
    qkv: Tensor  # [L, N, 3 D]
    highest: Tensor  # [L, N, H or more] λ


def gps_blocks(
    x: Tensor, edges: Tensor, operands: Operands, blocks: Sequence[Block], settings: Settings, attention: Attention
) -> Tensor:
    """x [N, D], edges [E, D] → x' of the last block [N, D], zero in padding."""
    operands = operands._replace(more=(attention.node_ptr, attention.rowptr))
    of_pass = PassSettings(settings, attention.heads, attention.dropout)
    return run_blocks(Directions(Forward, Backward), x, edges, of_pass, operands, blocks)


class Attending(gine.Direction):
    """What both directions share."""

    fields: ClassVar[Any] = Block
    more: ClassVar[int] = 2  # the tensors of `Attention`
    norms: ClassVar[int] = 3
    draws: ClassVar[int] = 5  # of the layer, of the weights, of the attention, of hidden values, of the output

    def __init__(self, x: Tensor, edges: Tensor, settings: PassSettings, operands: Sequence[Tensor]) -> None:
        super().__init__(x, edges, settings.nodes, operands)
        node_ptr, rowptr = self.operands
        self.attention = Attention(node_ptr, rowptr, settings.heads, settings.dropout)
        self.options = attention_options(self.sizes.width, settings.heads, self.settings.precision)

    def _grid(self) -> tuple[int, int]:
        return self.attention.node_ptr.shape[0] - 1, self.attention.heads

    def _weights(self, number: int) -> dict[str, Any]:
        """Arguments of the dropout of the weights."""
        drawn = dropout_arguments(self.attention.dropout, self.draws * number + 1)
        return {"seed": self.seed, **drawn, **self.options}


class Forward(Attending, gine.Forward):
    """One forward pass."""

    def run(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        sizes, layers = self.sizes, len(self.blocks)
        self.attended = KeptAttention(
            sizes.empty(3, layers, sizes.nodes, sizes.width),
            sizes.empty(layers, sizes.nodes, 3 * sizes.width),
            sizes.empty(layers, sizes.nodes, tile_width(self.attention.heads)),
        )
        out, kept = super().run()
        return out, (*kept, *self.attended)

    def _layer(self, number: int, source: Tensor, attention: Sequence[Any] = ()) -> None:
        each, sizes, qkv = self.blocks[number], self.sizes, self.attended.qkv[number]
        x, y, w = self.attended.narrow[:, number]
        super()._layer(number, source, (each.projection, each.projection_bias, qkv, x))
        attend[self._grid()](
            qkv, None, *self.attention[:2], y, self.attended.highest[number], num_warps=4, **self._weights(number)
        )
        forward_output[(sizes.splits,)](
            y, x, each.weight_y, each.bias_y, w, self.parts[2], **self.masks(number, 2), **sizes.tile,
            splits=sizes.splits, PRECISION=self.settings.precision,
        )  # fmt: skip

    def _feed_forward(self, number: int, attention: Sequence[Any] = ()) -> None:
        each = self.blocks[number]
        norm = (*self._norm(number, 2), each.scale_y, each.shift_y)
        super()._feed_forward(number, (self.attended.narrow[2, number], *norm))


class Backward(Attending, gine.Backward):
    """One backward pass."""

    def run(self, kept: Sequence[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        count, sizes = len(gine.Kept._fields), self.sizes
        self.attended = KeptAttention(*kept[count:])
        self.gy = sizes.empty(sizes.nodes, sizes.width)
        self.gw, self.gqkv = torch.empty_like(self.attended.narrow[0]), torch.empty_like(self.attended.qkv)
        return super().run(kept[:count], gradient)

    def _feed_forward(self, number: int, incoming: Tensor, attention: Sequence[Any] = ()) -> None:
        w, moments = self.attended.narrow[2, number], self.kept.moments[number, 2]
        super()._feed_forward(number, incoming, (w, moments, self.sums[0, number, 4]))

    def _layer(self, number: int, attention: Sequence[Any] = ()) -> None:
        each, (_, y, w) = self.blocks[number], self.attended.narrow[:, number]
        norm = (self.kept.moments[number, 2], each.scale_y, self.sums[0, number, 4])
        super()._layer(number, (w, *norm, each.weight_y, self.gw[number], self.gy))
        attend_backward[self._grid()](
            self.attended.qkv[number], None, y, self.gy, *self.attention[:2], self.attended.highest[number],
            self.gqkv[number], None, num_warps=4, **self._weights(number),
        )  # fmt: skip

    def _messages(self, number: int, attention: Sequence[Any] = ()) -> None:
        super()._messages(number, (self.blocks[number].projection, self.gqkv[number]))

    def _factors(self) -> list[Factors]:
        x, y, _ = self.attended.narrow
        return [*super()._factors(), Factors(self.gqkv, x, self.filled), Factors(self.gw, y, self.filled)]

    def _of_block(self, number: int, matrices: Matrices, sums: Tensor) -> list[Tensor | None]:
        own = [gradient[number] for pair in matrices[3:] for gradient in pair]
        *_, shift, scale = sums.unbind(0)
        return [*super()._of_block(number, matrices, sums), *own, scale, shift]
