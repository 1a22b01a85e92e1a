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
from ckgconv.backends.cuda.block_pass.gine_kernels import forward_output
from ckgconv.backends.cuda.block_pass.gradients import Factors, Matrices
from ckgconv.backends.cuda.block_pass.options import Links, Settings, dropout_arguments
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import block as tile_of


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


class Kept(NamedTuple):
    """What the backward pass reads next to `gine.Kept`."""

    narrow: Tensor  # [3, L, N, D] x, y, w
    qkv: Tensor  # [L, N, 3 D]
    highest: Tensor  # [L, N, H or more] λ


def gps_blocks(
    x: Tensor,
    edges: Tensor,
    links: Links,
    blocks: Sequence[Block],
    settings: Settings,
    attention: Attention,
    filled: Tensor,
    seed: Tensor,
) -> Tensor:
    """x [N, D], edges [E, D] → x' of the last block [N, D]; see `gine.gine_blocks`."""
    fields = (field for each in blocks for field in each)
    return GPSBlocks.apply(x, edges, settings, attention, filled, seed, *links, *fields)


class GPSBlocks(torch.autograd.Function):
    """x, edges, settings, attention, filled nodes, seed, links and the fields of each block → x'."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        edges: Tensor,
        settings: Settings,
        attention: Attention,
        filled: Tensor,
        seed: Tensor,
        *rest: Tensor,
    ) -> Tensor:
        forward = Forward(x.contiguous(), edges.contiguous(), settings, filled, seed, rest)
        out, kept, attended = forward.run_with(attention)
        ctx.save_for_backward(forward.x, forward.edges, filled, seed, *attention[:2], *kept, *attended, *rest)
        ctx.settings, ctx.attention = settings, attention[2:]
        return out

    @staticmethod
    @first_derivatives_only("the block pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, edges, filled, seed, node_ptr, rowptr, *saved = ctx.saved_tensors
        kept, attended, rest = gine.Kept(*saved[:3]), Kept(*saved[3:6]), saved[6:]
        backward = Backward(x, edges, ctx.settings, filled, seed, rest)
        backward.attend(Attention(node_ptr, rowptr, *ctx.attention), attended)
        gx, ge, fields = backward.run(kept, gradient.contiguous())
        return gx, ge, None, None, None, None, *([None] * len(Links._fields)), *fields


class Attending(gine.Direction):
    """What both directions share."""

    fields: ClassVar[Any] = Block
    norms: ClassVar[int] = 3
    draws: ClassVar[int] = 5  # of the layer, of the weights, of the attention, of hidden values, of the output

    def attend(self, attention: Attention, attended: Kept) -> None:
        """Take what the attention reads, and tensors that it has written or will write."""
        self.attention, self.attended = attention, attended
        self.options = attention_options(self.sizes.width, attention.heads, self.settings.precision)

    def _grid(self) -> tuple[int, int]:
        return self.attention.node_ptr.shape[0] - 1, self.attention.heads

    def _weights(self, number: int) -> dict[str, Any]:
        """Arguments of the dropout of the weights."""
        drawn = dropout_arguments(self.attention.dropout, self.draws * number + 1)
        return {"seed": self.seed, **drawn, **self.options}


class Forward(Attending, gine.Forward):
    """One forward pass."""

    def run_with(self, attention: Attention) -> tuple[Tensor, gine.Kept, Kept]:
        sizes, layers = self.sizes, len(self.blocks)
        narrow = sizes.empty(3, layers, sizes.nodes, sizes.width)
        highest = sizes.empty(layers, sizes.nodes, tile_of(attention.heads))
        self.attend(attention, Kept(narrow, sizes.empty(layers, sizes.nodes, 3 * sizes.width), highest))
        return *self.run(), self.attended

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

    def attend(self, attention: Attention, attended: Kept) -> None:
        super().attend(attention, attended)
        sizes = self.sizes
        self.gy = sizes.empty(sizes.nodes, sizes.width)
        self.gw, self.gqkv = torch.empty_like(attended.narrow[0]), torch.empty_like(attended.qkv)

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
