"""All blocks of GINE with feed-forward networks, five launches per block; `nn.message_passing` is the specification.

    t = x + drop(ReLU(MLP((1 + ε) x_i + Σ_j ReLU(x_j + e_ij))))        u  = BN(t)
    v = u + drop(W₂ drop(ReLU(W₁ u + b₁)) + b₂)                         x' = BN(v)

Kept for the backward pass, of each block: the input s, hidden values a and output m of the MLP, t, u, the hidden values
d of the feed-forward network, and v.

Legend: L blocks, N nodes, E edges, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass.feed_forward import backward_ffn, forward_ffn
from ckgconv.backends.cuda.block_pass.function import Directions, Operands, run_blocks
from ckgconv.backends.cuda.block_pass.gine_kernels import backward_gine, backward_rectified, forward_gine
from ckgconv.backends.cuda.block_pass.gradients import Factors, Matrices, matrix_gradients
from ckgconv.backends.cuda.block_pass.options import CHUNK, EdgeLists, Settings, Sizes, dropout_arguments
from ckgconv.backends.cuda.node_pass.backward_kernels import norm_sums
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.node_pass.options import NODES
from ckgconv.ops.launch import tile_width
from ckgconv.ops.reductions import summed

NO_ATTENTION = (None,) * 7


class Block(NamedTuple):
    """Parameters of one block."""

    share: Tensor  # [] or [1] ε, which has no gradient
    weight1: Tensor  # [D, D] M₁
    bias1: Tensor  # [D]
    weight2: Tensor  # [D, D] M₂
    bias2: Tensor  # [D]
    scale: Tensor  # [D] of the norm after the layer
    shift: Tensor  # [D]
    weight_in: Tensor  # [H, D] W₁
    bias_in: Tensor  # [H]
    weight_out: Tensor  # [D, H] W₂
    bias_out: Tensor  # [D]
    scale_out: Tensor  # [D] of the norm after the feed-forward network
    shift_out: Tensor  # [D]


class Kept(NamedTuple):
    """What the backward pass reads."""

    narrow: Tensor  # [6, L, N, D] s, a, m, t, u, v
    hidden: Tensor  # [L, N, H] d
    moments: Tensor  # [L, 2, 3, D] of t and v, and of w where attention runs next to the layer


def gine_blocks(x: Tensor, edges: Tensor, operands: Operands, blocks: Sequence[Block], settings: Settings) -> Tensor:
    """x [N, D], edges [E, D] → x' of the last block [N, D], zero in padding."""
    return run_blocks(Directions(Forward, Backward), x, edges, settings, operands, blocks)


class Direction:
    """One direction of the pass: its operands and sizes."""

    fields: ClassVar[Any] = Block
    more: ClassVar[int] = 0  # operands between lists and fields
    norms: ClassVar[int] = 2  # of a block
    draws: ClassVar[int] = 3  # masks of a block: of the layer first, of hidden values and of the output last

    def __init__(self, x: Tensor, edges: Tensor, settings: Settings, operands: Sequence[Tensor]) -> None:
        self.x, self.edges, self.settings = x, edges, settings
        self.filled, self.seed, *rest = operands
        count, width = len(EdgeLists._fields), len(self.fields._fields)
        first = count + self.more
        self.lists, self.operands = EdgeLists(*rest[:count]), rest[count:first]
        self.blocks = [self.fields(*rest[start : start + width]) for start in range(first, len(rest), width)]
        self.sizes = Sizes(x, self.blocks[0].weight_in.shape[0], settings)

    def masks(self, number: int, which: int) -> dict[str, Any]:
        """Arguments of the dropout of that number in a block."""
        drawn = dropout_arguments(self.settings.dropout, self.draws * number + which)
        return {"filled": self.filled, "seed": self.seed, **drawn}


class Forward(Direction):
    """One forward pass."""

    def run(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        sizes, layers = self.sizes, len(self.blocks)
        self.parts = sizes.empty(self.norms, 3, sizes.splits, sizes.width)  # of the moments of t and of v
        self.kept = Kept(
            sizes.empty(6, layers, sizes.nodes, sizes.width),
            sizes.empty(layers, sizes.nodes, sizes.hidden),
            sizes.empty(layers, self.norms, 3, sizes.width),
        )
        source = self.x
        for number in range(layers):
            self._layer(number, source)
            self._feed_forward(number)
            source = self.kept.narrow[5, number]
        return self._last_norm(source), self.kept

    def _norm(self, number: int, which: int) -> tuple[Tensor, ...]:
        """Parts, moments and running statistics of a norm of a block."""
        return (self.parts[which], self.kept.moments[number, which], *self.settings.running[number][which])

    def _before(self, number: int) -> tuple[Tensor, ...]:
        """The norm that ends the previous block."""
        previous = max(number - 1, 0)
        return (*self._norm(previous, 1), self.blocks[previous].scale_out, self.blocks[previous].shift_out)

    def _layer(self, number: int, source: Tensor, attention: Sequence[Any] = NO_ATTENTION[:4]) -> None:
        """`attention`: its projection and bias, and the tensors that keep what is projected and x."""
        each, sizes, lists = self.blocks[number], self.sizes, self.lists
        s, a, m, t, *_ = self.kept.narrow[:, number]
        forward_gine[(sizes.splits,)](
            source, *self._before(number), self.settings.momentum, self.edges, lists.pointer, lists.sender, each.share,
            each.weight1, each.bias1, each.weight2, each.bias2, s, a, m, t, self.parts[0],
            *attention, **self.masks(number, 0), **sizes.tile, **sizes.norms, NORM=number > 0,
            ACTIVE=self.norms == 2, CHUNK=CHUNK, PRECISION=self.settings.precision,
        )  # fmt: skip

    def _feed_forward(self, number: int, attention: Sequence[Any] = NO_ATTENTION) -> None:
        """`attention`: w and its norm."""
        each, sizes = self.blocks[number], self.sizes
        *_, t, u, v = self.kept.narrow[:, number]
        forward_ffn[(sizes.splits,)](
            t, *self._norm(number, 0), each.scale, each.shift, *attention, self.settings.momentum, each.weight_in,
            each.bias_in, each.weight_out, each.bias_out, u, self.kept.hidden[number], v, self.parts[1],
            **self.masks(number, self.draws - 2), **sizes.tile, **sizes.ffn, **sizes.norms,
            TWO=attention[0] is not None, HIDDEN=tile_width(sizes.hidden),
        )  # fmt: skip

    def _last_norm(self, v: Tensor) -> Tensor:
        """x' [N, D] of the last block."""
        sizes, last, out = self.sizes, len(self.blocks) - 1, torch.empty_like(self.x)
        parts, moments, *running = self._norm(last, 1)
        apply_norm[(sizes.splits,)](
            v, parts, moments, *running, self.settings.momentum, self.blocks[last].scale_out,
            self.blocks[last].shift_out, out, None, self.filled, N=sizes.nodes, GIVEN=False, WEIGHTED=False,
            TILE=NODES, **sizes.norms, **sizes.tile,
        )  # fmt: skip
        return out


class Backward(Direction):
    """One backward pass."""

    def run(self, kept: Sequence[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        """∂x, ∂e and the gradients of the fields of every block."""
        sizes, layers = self.sizes, len(self.blocks)
        self.kept = Kept(*kept)
        # Σg and Σ g t̂ of the first norm, then of the others.
        self.sums = sizes.empty(sizes.splits, layers, 2 * self.norms, sizes.width)
        self.narrow = sizes.empty(3, layers, sizes.nodes, sizes.width)  # ∂z, ∂m, ∂o
        self.hidden = sizes.empty(layers, sizes.nodes, sizes.hidden)  # ∂n
        self.gx, self.gu, self.residual, self.gs = sizes.empty(4, sizes.nodes, sizes.width)
        self.ge = torch.zeros_like(self.edges)
        self.common = {**sizes.tile, "part_stride": self.sums.stride(0)}
        norm_sums[(sizes.splits,)](
            gradient, self.kept.narrow[5, -1], self.kept.moments[-1, 1], self.sums[0, -1, 2], filled=self.filled,
            splits=sizes.splits, **self.common,
        )  # fmt: skip
        incoming = gradient
        for number in range(layers - 1, -1, -1):
            self._feed_forward(number, incoming)
            self._layer(number)
            self._messages(number)
            incoming = self.gx
        return self.gx, self.ge, self._fields()

    def _feed_forward(self, number: int, incoming: Tensor, attention: Sequence[Any] = NO_ATTENTION[:3]) -> None:
        """`attention`: w, its moments and sums."""
        each, sizes, moments = self.blocks[number], self.sizes, self.kept.moments[number]
        *_, t, _, v = self.kept.narrow[:, number]
        backward_ffn[(sizes.splits,)](
            incoming, v, moments[1], each.scale_out, self.sums[0, number, 2], self.sums.stride(0), sizes.splits,
            self.kept.hidden[number], each.weight_in, each.weight_out, self.narrow[2, number], self.hidden[number],
            self.gu, t, moments[0], self.sums[0, number, 0], *attention, **self.masks(number, self.draws - 2),
            **self.common, **sizes.ffn, TWO=attention[0] is not None, V_PARTS=sizes.parts,
        )  # fmt: skip

    def _layer(self, number: int, attention: Sequence[Any] = NO_ATTENTION) -> None:
        """`attention`: w, its moments, scale and sums, the output's matrix, tensors for the gradients of w and y."""
        each, sizes = self.blocks[number], self.sizes
        _, a, m, t, *_ = self.kept.narrow[:, number]
        backward_gine[(sizes.splits,)](
            self.gu, t, self.kept.moments[number, 0], each.scale, self.sums[0, number, 0], self.sums.stride(0),
            sizes.splits, m, a, each.weight1, each.weight2, self.residual, self.narrow[1, number],
            self.narrow[0, number], self.gs, *attention, **self.masks(number, 0), **sizes.tile, ACTIVE=self.norms == 2,
            PARTS=sizes.parts, PRECISION=self.settings.precision,
        )  # fmt: skip

    def _messages(self, number: int, attention: Sequence[Any] = NO_ATTENTION[:2]) -> None:
        """`attention`: its projection and the gradients of what was projected."""
        sizes, lists, before = self.sizes, self.lists, max(number - 1, 0)
        previous = self.blocks[before]
        backward_rectified[(sizes.splits,)](
            self.gs, self.residual, self.blocks[number].share, self.edges, self.ge, lists.sender_ptr,
            lists.sender_rows, lists.sender_receiver, self.kept.narrow[5, before] if number else self.x,
            self.kept.moments[before, 1], previous.scale_out, previous.shift_out, self.sums[0, before, 2],
            self.sums.stride(0), *attention, self.gx, filled=self.filled, N=sizes.nodes, NORM=number > 0, CHUNK=CHUNK,
            PRECISION=self.settings.precision, **sizes.tile,
        )  # fmt: skip

    def _factors(self) -> list[Factors]:
        """Of the gradients of the MLP's matrices, which have one shape, and of both of the feed-forward network."""
        u, filled = self.kept.narrow[4], self.filled
        both = torch.Size((2 * len(self.blocks), *u.shape[1:]))
        return [
            Factors(self.narrow[:2].view(both), self.kept.narrow[:2].view(both), filled),
            Factors(self.hidden, u, filled),
            Factors(self.narrow[2], self.kept.hidden, filled),
        ]

    def _fields(self) -> list[Tensor | None]:
        """Gradients in the order of the fields of each block."""
        matrices = matrix_gradients(self._factors(), self.settings.precision)
        sums = summed(self.sums)
        gradients: list[Tensor | None] = []
        for number, each in enumerate(self.blocks):
            found = self._of_block(number, matrices, sums[number])
            gradients += [
                None if value is None else value.view_as(field) for value, field in zip(found, each, strict=True)
            ]
        return gradients

    def _of_block(self, number: int, matrices: Matrices, sums: Tensor) -> list[Tensor | None]:
        """Gradients of the fields of a block, from those of all matrices and the sums of its norms."""
        (weight, bias), (weight_in, bias_in), (weight_out, bias_out), *_ = matrices
        second = len(self.blocks) + number
        shift, scale, shift_out, scale_out, *_ = sums.unbind(0)
        layer = [None, weight[number], bias[number], weight[second], bias[second], scale, shift]
        feed_forward = [weight_in[number], bias_in[number], weight_out[number], bias_out[number]]
        return [*layer, *feed_forward, scale_out, shift_out]
