"""All blocks of GINE with feed-forward networks, five launches per block; `nn.message_passing` is the specification.

    t = x + drop(ReLU(MLP((1 + ε) x_i + Σ_j ReLU(x_j + e_ij))))        u  = BN(t)
    v = u + drop(W₂ drop(ReLU(W₁ u + b₁)) + b₂)                         x' = BN(v)

Kept for the backward pass, of each block: the input s, hidden values a and output m of the MLP, t, u, the hidden values
d of the feed-forward network, and v.

Legend: L blocks, N nodes, E edges, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass.feed_forward import backward_ffn, forward_ffn
from ckgconv.backends.cuda.block_pass.gine_kernels import backward_gine, backward_rectified, forward_gine
from ckgconv.backends.cuda.block_pass.gradients import Factors, matrix_gradients
from ckgconv.backends.cuda.block_pass.options import CHUNK, Links, Settings, Sizes, dropout_arguments
from ckgconv.backends.cuda.node_pass.backward_kernels import norm_sums
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.node_pass.options import NODES
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import block as tile_of
from ckgconv.ops.reductions import summed

DRAWS = 3  # masks of a block: of the layer, of hidden values, of the feed-forward network
NO_NORM = (None,) * 7  # of the attention that GPS has next to the layer


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
    moments: Tensor  # [L, 2, 3, D] of t and v


def gine_blocks(
    x: Tensor, edges: Tensor, links: Links, blocks: Sequence[Block], settings: Settings, filled: Tensor, seed: Tensor
) -> Tensor:
    """x [N, D], edges [E, D] → x' of the last block [N, D], zero in padding: nodes from `filled` [1] on.

    `seed` [1] is that of all masks.
    """
    fields = (field for each in blocks for field in each)
    return GINEBlocks.apply(x, edges, settings, filled, seed, *links, *fields)


class GINEBlocks(torch.autograd.Function):
    """x, edges, settings, filled nodes, seed, links and the fields of each block → x'."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, edges: Tensor, settings: Settings, filled: Tensor, seed: Tensor, *rest: Tensor
    ) -> Tensor:
        forward = Forward(x.contiguous(), edges.contiguous(), settings, filled, seed, rest)
        out, kept = forward.run()
        ctx.save_for_backward(forward.x, forward.edges, filled, seed, *kept, *rest)
        ctx.settings = settings
        return out

    @staticmethod
    @first_derivatives_only("the block pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, edges, filled, seed, narrow, hidden, moments, *rest = ctx.saved_tensors
        backward = Backward(x, edges, ctx.settings, filled, seed, rest)
        gx, ge, fields = backward.run(Kept(narrow, hidden, moments), gradient.contiguous())
        return gx, ge, None, None, None, *([None] * len(Links._fields)), *fields


class Direction:
    """One direction of the pass: its operands and sizes."""

    def __init__(
        self, x: Tensor, edges: Tensor, settings: Settings, filled: Tensor, seed: Tensor, rest: Sequence[Tensor]
    ) -> None:
        self.x, self.edges, self.settings, self.filled, self.seed = x, edges, settings, filled, seed
        count, fields = len(Links._fields), len(Block._fields)
        self.links = Links(*rest[:count])
        self.blocks = [Block(*rest[start : start + fields]) for start in range(count, len(rest), fields)]
        self.sizes = Sizes(x, self.blocks[0].weight_in.shape[0], settings)

    def masks(self, number: int, which: int) -> dict[str, Any]:
        """Arguments of the dropout of a block: its layer, its hidden values."""
        drawn = dropout_arguments(self.settings.dropout, DRAWS * number + which)
        return {"filled": self.filled, "seed": self.seed, **drawn}


class Forward(Direction):
    """One forward pass."""

    def run(self) -> tuple[Tensor, Kept]:
        sizes, layers = self.sizes, len(self.blocks)
        self.parts = sizes.empty(2, 3, sizes.splits, sizes.width)  # of the moments of t and of v
        self.kept = Kept(
            sizes.empty(6, layers, sizes.nodes, sizes.width),
            sizes.empty(layers, sizes.nodes, sizes.hidden),
            sizes.empty(layers, 2, 3, sizes.width),
        )
        source = self.x
        for number in range(layers):
            self._layer(number, source)
            self._feed_forward(number)
            source = self.kept.narrow[5, number]
        return self._last_norm(source), self.kept

    def _norm(self, number: int, which: int) -> tuple[Tensor, ...]:
        """Parts, moments and running statistics of the first or second norm of a block."""
        return (self.parts[which], self.kept.moments[number, which], *self.settings.running[2 * number + which])

    def _before(self, number: int) -> tuple[Tensor, ...]:
        """The norm that ends the previous block."""
        previous = max(number - 1, 0)
        return (*self._norm(previous, 1), self.blocks[previous].scale_out, self.blocks[previous].shift_out)

    def _layer(self, number: int, source: Tensor) -> None:
        each, sizes, links = self.blocks[number], self.sizes, self.links
        s, a, m, t, *_ = self.kept.narrow[:, number]
        forward_gine[(sizes.splits,)](
            source, *self._before(number), self.settings.momentum, self.edges, links.pointer, links.sender, each.share,
            each.weight1, each.bias1, each.weight2, each.bias2, s, a, m, t, self.parts[0],
            **self.masks(number, 0), **sizes.tile, **sizes.norms, NORM=number > 0,
            ACTIVE=True, CHUNK=CHUNK, PRECISION=self.settings.precision,
        )  # fmt: skip

    def _feed_forward(self, number: int) -> None:
        each, sizes = self.blocks[number], self.sizes
        *_, t, u, v = self.kept.narrow[:, number]
        forward_ffn[(sizes.splits,)](
            t, *self._norm(number, 0), each.scale, each.shift, *NO_NORM, self.settings.momentum, each.weight_in,
            each.bias_in, each.weight_out, each.bias_out, u, self.kept.hidden[number], v, self.parts[1],
            **self.masks(number, 1), **sizes.tile, **sizes.ffn, **sizes.norms,
            TWO=False, HIDDEN=tile_of(sizes.hidden),
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

    def run(self, kept: Kept, gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        """∂x, ∂e and the gradients of the fields of every block."""
        sizes, layers = self.sizes, len(self.blocks)
        self.kept = kept
        # Σg and Σ g t̂ of the first norm, then of the second.
        self.sums = sizes.empty(sizes.splits, layers, 4, sizes.width)
        self.narrow = sizes.empty(3, layers, sizes.nodes, sizes.width)  # ∂z, ∂m, ∂o
        self.hidden = sizes.empty(layers, sizes.nodes, sizes.hidden)  # ∂n
        self.gx, self.gu, self.residual, self.gs = sizes.empty(4, sizes.nodes, sizes.width)
        self.ge = torch.zeros_like(self.edges)
        self.common = {**sizes.tile, "part_stride": self.sums.stride(0)}
        norm_sums[(sizes.splits,)](
            gradient, kept.narrow[5, -1], kept.moments[-1, 1], self.sums[0, -1, 2], filled=self.filled,
            splits=sizes.splits, **self.common,
        )  # fmt: skip
        incoming = gradient
        for number in range(layers - 1, -1, -1):
            self._feed_forward(number, incoming)
            self._layer(number)
            self._messages(number)
            incoming = self.gx
        return self.gx, self.ge, self._fields()

    def _feed_forward(self, number: int, incoming: Tensor) -> None:
        each, sizes, moments = self.blocks[number], self.sizes, self.kept.moments[number]
        *_, t, _, v = self.kept.narrow[:, number]
        backward_ffn[(sizes.splits,)](
            incoming, v, moments[1], each.scale_out, self.sums[0, number, 2], self.sums.stride(0), sizes.splits,
            self.kept.hidden[number], each.weight_in, each.weight_out, self.narrow[2, number], self.hidden[number],
            self.gu, t, moments[0], self.sums[0, number, 0], None, None, None, **self.masks(number, 1), **self.common,
            **sizes.ffn, TWO=False, V_PARTS=sizes.parts,
        )  # fmt: skip

    def _layer(self, number: int) -> None:
        each, sizes = self.blocks[number], self.sizes
        _, a, m, t, *_ = self.kept.narrow[:, number]
        backward_gine[(sizes.splits,)](
            self.gu, t, self.kept.moments[number, 0], each.scale, self.sums[0, number, 0], self.sums.stride(0),
            sizes.splits, m, a, each.weight1, each.weight2, self.residual, self.narrow[1, number],
            self.narrow[0, number], self.gs, **self.masks(number, 0), **sizes.tile, ACTIVE=True,
            PARTS=sizes.parts, PRECISION=self.settings.precision,
        )  # fmt: skip

    def _messages(self, number: int) -> None:
        sizes, links, before = self.sizes, self.links, max(number - 1, 0)
        previous = self.blocks[before]
        backward_rectified[(sizes.splits,)](
            self.gs, self.residual, self.blocks[number].share, self.edges, self.ge, links.sender_ptr,
            links.sender_rows, links.sender_receiver, self.kept.narrow[5, before] if number else self.x,
            self.kept.moments[before, 1], previous.scale_out, previous.shift_out, self.sums[0, before, 2],
            gx=self.gx, filled=self.filled, N=sizes.nodes, NORM=number > 0, CHUNK=CHUNK, **self.common,
        )  # fmt: skip

    def _fields(self) -> list[Tensor | None]:
        """Gradients in the order of the fields of each block."""
        layers, u = len(self.blocks), self.kept.narrow[4]
        both = torch.Size((2 * layers, *u.shape[1:]))
        square, inner, outer = matrix_gradients(
            [
                # The two matrices of the MLP have one shape.
                Factors(self.narrow[:2].view(both), self.kept.narrow[:2].view(both), self.filled),
                Factors(self.hidden, u, self.filled),
                Factors(self.narrow[2], self.kept.hidden, self.filled),
            ],
            self.settings.precision,
        )
        sums = summed(self.sums)
        gradients: list[Tensor | None] = []
        for number, each in enumerate(self.blocks):
            shift, scale, shift_out, scale_out = sums[number].unbind(0)
            found = [
                *(square[0][number], square[1][number], square[0][layers + number], square[1][layers + number]),
                *(scale, shift, inner[0][number], inner[1][number], outer[0][number], outer[1][number]),
                *(scale_out, shift_out),
            ]
            gradients += [None, *(value.view_as(field) for value, field in zip(found, each[1:], strict=True))]
        return gradients
