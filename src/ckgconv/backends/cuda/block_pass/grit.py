"""All blocks of GRIT, five launches per block; the specification is `nn.grit`.

    q, k, w = projections of x                                          `grit_kernels`
    y, e'   = attention over pairs, with the norm of the pair state     `attention_pass`
    t = x + O (y ⊙ θ₁ + log(1 + d) y ⊙ θ₂) + b         u  = BN(t)       `grit_kernels`
    v = u + W₂ ReLU(W₁ u + b₁) + b₂                     x' = BN(v)       `feed_forward`

The pair state stays inside the pass, in float16 under autocast, and its gradient in bfloat16: handed from one autograd
function to the next, torch would cast that gradient to float16, where small ones vanish.

Legend: L blocks, N nodes, P pairs, D width, F hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.attention_pass import launch
from ckgconv.backends.cuda.block_pass.feed_forward import backward_ffn, forward_ffn
from ckgconv.backends.cuda.block_pass.gradients import Factors, Matrices, matrix_gradients
from ckgconv.backends.cuda.block_pass.grit_kernels import (
    backward_output,
    backward_projections,
    forward_output,
    forward_projections,
)
from ckgconv.backends.cuda.block_pass.options import Settings, Sizes, dropout_arguments
from ckgconv.backends.cuda.node_pass.backward_kernels import norm_sums
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.node_pass.options import NODES
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import tile_width
from ckgconv.ops.reductions import summed

NO_NORM = (None,) * 7
SUMS = 6  # of a block: Σg and Σ g t̂ of both norms, ∂θ₁, ∂θ₂


class Block(NamedTuple):
    """Parameters of one block."""

    query: Tensor  # [D, D] Q
    query_bias: Tensor  # [D]
    key: Tensor  # [D, D] K
    value: Tensor  # [D, D] V
    mix: Tensor  # [H, D/H, D/H] B
    theta1: Tensor  # [D]
    theta2: Tensor  # [D]
    weight: Tensor  # [D, D] O
    bias: Tensor  # [D]
    scale: Tensor  # [D] of the norm after the attention
    shift: Tensor  # [D]
    weight_in: Tensor  # [F, D] W₁
    bias_in: Tensor  # [F]
    weight_out: Tensor  # [D, F] W₂
    bias_out: Tensor  # [D]
    scale_out: Tensor  # [D] of the norm after the feed-forward network
    shift_out: Tensor  # [D]


class Batch(NamedTuple):
    """What the pass reads of a batch."""

    lists: launch.Lists
    log_degree: Tensor  # [N] log(1 + d)
    filled: Tensor  # [1] nodes from there on are padding
    seeds: Tensor  # [L, 2] of the masks of each block


class PassSettings(NamedTuple):
    """What has no gradient."""

    nodes: Settings
    attention: Sequence[launch.AttentionSettings]  # of each block


class Kept(NamedTuple):
    """What the backward pass reads."""

    narrow: Tensor  # [5, L, N, D] x, y, t, u, v
    hidden: Tensor  # [L, N, F]
    moments: Tensor  # [L, 2, 3, D] of t and v
    projected: Tensor  # [3, L, N, D] q, k, w
    received: Tensor  # [3, L, N, D] values, states, totals
    norms: Tensor  # [L, 2, D] of the pair states after each block, as slope and offset
    pair_moments: Tensor  # [L, 3, D] of these


def grit_blocks(
    x: Tensor,
    e: Tensor,
    batch: Batch,
    blocks: Sequence[tuple[Block, launch.Weights]],
    settings: PassSettings,
) -> Tensor:
    """x [N, D], e [P, D] → x' of the last block [N, D], zero in padding."""
    fields = (field for pair in blocks for each in pair for field in each)
    return GRITBlocks.apply(x, e, batch, settings, *fields)


class GRITBlocks(torch.autograd.Function):
    """x, e, the batch, settings and the fields of each block → x'."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, e: Tensor, batch: Batch, settings: PassSettings, *fields: Tensor) -> Tensor:
        x = x.contiguous()
        out, kept, states = Forward(x, batch, settings, fields).run(x, e)
        ctx.save_for_backward(*batch.lists, *batch[1:], *kept, *states, *fields)
        ctx.settings, ctx.dtype = settings, e.dtype
        return out

    @staticmethod
    @first_derivatives_only("the block pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved, count = iter(ctx.saved_tensors), len(ctx.settings.attention)
        batch = Batch(launch.Lists(*_first(saved, launch.Lists)), *(next(saved) for _ in Batch._fields[1:]))
        kept, states = Kept(*_first(saved, Kept)), [next(saved) for _ in range(count + 1)]
        gradient = gradient.contiguous()
        backward = Backward(gradient, batch, ctx.settings, list(saved))
        gx, gz, fields = backward.run(kept, states, gradient)
        width = gx.shape[1]
        return gx, gz[:, :width].to(ctx.dtype), None, None, *fields


def _first(saved: Any, fields: Any) -> list[Tensor]:
    return [next(saved) for _ in fields._fields]


class Direction:
    """One direction of the pass, over nodes of the shape of x [N, D]: its operands and sizes."""

    def __init__(self, x: Tensor, batch: Batch, settings: PassSettings, fields: Sequence[Tensor]) -> None:
        self.batch, self.settings = batch, settings
        own, all_fields = len(Block._fields), len(Block._fields) + len(launch.Weights._fields)
        starts = range(0, len(fields), all_fields)
        self.blocks = [Block(*fields[start : start + own]) for start in starts]
        self.weights = [launch.Weights(*fields[start + own : start + all_fields]) for start in starts]
        self.sizes = Sizes(x, self.blocks[0].weight_in.shape[0], settings.nodes)
        self.plain = {name: value for name, value in self.sizes.tile.items() if name != "epsilon"}
        self.heads = {"CHANNELS": self.blocks[0].mix.shape[1], "PRECISION": settings.nodes.precision}
        # Masks of the feed-forward network: nothing is dropped.
        self.masks = {"filled": batch.filled, "seed": batch.filled, **dropout_arguments(0.0, 0)}


class Forward(Direction):
    """One forward pass."""

    def run(self, x: Tensor, e: Tensor) -> tuple[Tensor, Kept, list[Tensor]]:
        """x', what is kept, and the L + 1 pair states [P, pitch of D], each but the first before its norm."""
        sizes, layers = self.sizes, len(self.blocks)
        self.parts = sizes.empty(2, 3, sizes.splits, sizes.width)  # of the moments of t and of v
        wide = (layers, sizes.nodes, sizes.width)
        self.kept = Kept(
            narrow=sizes.empty(5, *wide),
            hidden=sizes.empty(layers, sizes.nodes, sizes.hidden),
            moments=sizes.empty(layers, 2, 3, sizes.width),
            projected=sizes.empty(3, *wide),
            received=sizes.empty(3, *wide),
            norms=sizes.empty(layers, 2, sizes.width),
            pair_moments=sizes.empty(layers, 3, sizes.width),
        )
        states = [launch.stored(e, self.settings.attention[0].gradients)]
        for number in range(layers):
            self._projections(number, x)
            states.append(self._attention(number, states[-1]))
            self._output(number)
            self._feed_forward(number)
        return self._last_norm(), self.kept, states

    def _norm(self, number: int, which: int) -> tuple[Tensor, ...]:
        """Parts, moments and running statistics of a norm of a block."""
        running = self.settings.nodes.running[number][which]
        return (self.parts[which], self.kept.moments[number, which], *running)

    def _projections(self, number: int, x: Tensor) -> None:
        each, before, sizes = self.blocks[number], max(number - 1, 0), self.sizes
        previous = self.blocks[before]
        forward_projections[(sizes.splits,)](
            self.kept.narrow[4, before] if number else x, *self._norm(before, 1), previous.scale_out,
            previous.shift_out, self.settings.nodes.momentum, each.query, each.query_bias, each.key, each.value,
            self.kept.narrow[0, number], *self.kept.projected[:, number], self.batch.filled, **sizes.tile,
            **sizes.norms, NORM=number > 0, PRECISION=self.settings.nodes.precision,
        )  # fmt: skip

    def _attention(self, number: int, z: Tensor) -> Tensor:
        """The pair state after a block."""
        kept, batch = self.kept, self.batch
        state = launch.PairState(z, kept.norms[number - 1] if number else None)
        settings, projected = self.settings.attention[number], kept.projected[:, number].unbind()
        forward = launch.Forward(state, batch.lists, settings, projected, self.weights[number])
        parts = forward.parts()
        following = forward.run(parts, batch.seeds[number], kept.received[:, number].unbind())
        forward.finish(parts, kept.norms[number], kept.pair_moments[number])
        return following

    def _output(self, number: int) -> None:
        each, sizes = self.blocks[number], self.sizes
        x, y, t, _, _ = self.kept.narrow[:, number]
        values, states, _ = self.kept.received[:, number]
        forward_output[(sizes.splits,)](
            x, values, states, each.mix, self.batch.log_degree, each.theta1, each.theta2, each.weight, each.bias, y, t,
            self.parts[0], self.batch.filled, sizes.splits, **self.plain, **self.heads,
        )  # fmt: skip

    def _feed_forward(self, number: int) -> None:
        each, sizes = self.blocks[number], self.sizes
        _, _, t, u, v = self.kept.narrow[:, number]
        forward_ffn[(sizes.splits,)](
            t, *self._norm(number, 0), each.scale, each.shift, *NO_NORM, self.settings.nodes.momentum,
            each.weight_in, each.bias_in, each.weight_out, each.bias_out, u, self.kept.hidden[number], v,
            self.parts[1], **self.masks, **sizes.tile, **sizes.ffn, **sizes.norms, TWO=False,
            HIDDEN=tile_width(sizes.hidden),
        )  # fmt: skip

    def _last_norm(self) -> Tensor:
        """x' [N, D] of the last block."""
        sizes, last = self.sizes, self.blocks[-1]
        out = sizes.empty(sizes.nodes, sizes.width)
        parts, moments, *running = self._norm(len(self.blocks) - 1, 1)
        apply_norm[(sizes.splits,)](
            self.kept.narrow[4, -1], parts, moments, *running, self.settings.nodes.momentum, last.scale_out,
            last.shift_out, out, None, self.batch.filled, N=sizes.nodes, GIVEN=False, WEIGHTED=False, TILE=NODES,
            **sizes.norms, **sizes.tile,
        )  # fmt: skip
        return out


class Backward(Direction):
    """One backward pass."""

    def run(self, kept: Kept, states: Sequence[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        """∂x, ∂z of the first pair state, and the gradients of the fields of every block."""
        sizes, layers = self.sizes, len(self.blocks)
        self.kept = kept
        self.sums = sizes.empty(sizes.splits, layers, SUMS, sizes.width)
        wide = (layers, sizes.nodes, sizes.width)
        self.narrow = sizes.empty(5, *wide)  # G, scaled y, ∂y, ∂(Σ α ê), ∂o
        self.hidden = sizes.empty(layers, sizes.nodes, sizes.hidden)
        self.projected = sizes.empty(3, *wide)
        self.gx, self.gu = sizes.empty(2, sizes.nodes, sizes.width)
        self.common = {**sizes.tile, "part_stride": self.sums.stride(0)}
        norm_sums[(sizes.splits,)](
            gradient, kept.narrow[4, -1], kept.moments[-1, 1], self.sums[0, -1, 2], filled=self.batch.filled,
            splits=sizes.splits, **self.common,
        )  # fmt: skip
        incoming, gz, norm_gradient = gradient, None, None
        of_attention: list[list[Tensor | None]] = [[]] * layers
        for number in range(layers - 1, -1, -1):
            self._feed_forward(number, incoming)
            self._output(number)
            gz, norm_gradient, of_attention[number] = self._attention(number, states, gz, norm_gradient)
            self._projections(number)
            incoming = self.gx
        assert gz is not None
        return self.gx, gz, self._fields(of_attention)

    def _feed_forward(self, number: int, incoming: Tensor) -> None:
        each, sizes, moments = self.blocks[number], self.sizes, self.kept.moments[number]
        _, _, t, _, v = self.kept.narrow[:, number]
        backward_ffn[(sizes.splits,)](
            incoming, v, moments[1], each.scale_out, self.sums[0, number, 2], self.sums.stride(0), sizes.splits,
            self.kept.hidden[number], each.weight_in, each.weight_out, self.narrow[4, number], self.hidden[number],
            self.gu, t, moments[0], self.sums[0, number, 0], None, None, None, **self.masks, **self.common,
            **sizes.ffn, TWO=False, V_PARTS=sizes.parts,
        )  # fmt: skip

    def _output(self, number: int) -> None:
        each, sizes = self.blocks[number], self.sizes
        _, y, t, _, _ = self.kept.narrow[:, number]
        residual, scaled, at_values, at_states, _ = self.narrow[:, number]
        backward_output[(sizes.splits,)](
            self.gu, t, self.kept.moments[number, 0], each.scale, self.sums[0, number, 0], self.sums.stride(0),
            sizes.splits, y, each.mix, self.batch.log_degree, each.theta1, each.theta2, each.weight, residual, scaled,
            at_values, at_states, self.sums[0, number, 4], self.batch.filled, **sizes.tile, **self.heads,
            PARTS=sizes.parts,
        )  # fmt: skip

    def _attention(
        self, number: int, states: Sequence[Tensor], g: Tensor | None, norm_gradient: Tensor | None
    ) -> tuple[Tensor, Tensor | None, list[Tensor | None]]:
        """Gradients of the state before a block, of its norm, and of the weights; from those of the state after it."""
        kept, z = self.kept, states[number]
        norm = (kept.norms[number - 1], kept.pair_moments[number - 1]) if number else (None, None)
        state, projected = launch.PairState(z, *norm), kept.projected[:, number].unbind()
        settings, weights = self.settings.attention[number], self.weights[number]
        backward = launch.Backward(state, self.batch.lists, settings, projected, weights)
        read = [*kept.received[:, number], states[number + 1], kept.pair_moments[number]]
        pulls, at_projected = self.narrow[2:4, number].unbind(), self.projected[:, number].unbind()
        return backward.run(self.batch.seeds[number], read, pulls, g, norm_gradient, at_projected)

    def _projections(self, number: int) -> None:
        each, before, sizes = self.blocks[number], max(number - 1, 0), self.sizes
        backward_projections[(sizes.splits,)](
            *self.projected[:, number], self.narrow[0, number], each.query, each.key, each.value,
            self.kept.narrow[4, before], self.kept.moments[before, 1], self.sums[0, before, 2], self.sums.stride(0),
            self.gx, filled=self.batch.filled, N=sizes.nodes, NORM=number > 0,
            PRECISION=self.settings.nodes.precision, **sizes.tile,
        )  # fmt: skip

    def _fields(self, of_attention: Sequence[Sequence[Tensor | None]]) -> list[Tensor | None]:
        """Gradients in the order of the fields of each block."""
        matrices = matrix_gradients(self._factors(), self.settings.nodes.precision)
        mixes, sums = self._mixes(matrices[-1][0]), summed(self.sums)
        gradients: list[Tensor | None] = []
        for number, each in enumerate(zip(self.blocks, self.weights, strict=True)):
            found = [*self._of_block(number, matrices, mixes, sums[number]), *of_attention[number]]
            fields = [field for part in each for field in part]
            gradients += [
                None if value is None else value.view_as(field) for value, field in zip(found, fields, strict=True)
            ]
        return gradients

    def _factors(self) -> list[Factors]:
        filled, (x, _, _, u, _) = self.batch.filled, self.kept.narrow
        residual, scaled, at_values, _, out = self.narrow
        return [
            *(Factors(each, x, filled) for each in self.projected),
            Factors(residual, scaled, filled),
            Factors(self.hidden, u, filled),
            Factors(out, self.kept.hidden, filled),
            Factors(self.kept.received[1], at_values, filled),
        ]

    def _mixes(self, products: Tensor) -> Tensor:
        """[L, H, D/H, D/H] the blocks on the diagonal of Σ_i (Σ_j α_ij ê_ij) ∂y_iᵀ [L, D, D], which are ∂B."""
        heads, channels, _ = self.blocks[0].mix.shape
        blocks = products.view(-1, heads, channels, heads, channels)
        return blocks.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2).contiguous()

    def _of_block(self, number: int, matrices: Matrices, mixes: Tensor, sums: Tensor) -> list[Tensor]:
        """Gradients of the fields of `Block`, from those of all matrices and the sums of its norms."""
        (query, query_bias), (key, _), (value, _), *others = [
            (weight[number], bias[number]) for weight, bias in matrices
        ]
        (weight, bias), (weight_in, bias_in), (weight_out, bias_out), _ = others
        shift, scale, shift_out, scale_out, theta1, theta2 = sums.unbind(0)
        attention = [query, query_bias, key, value, mixes[number], theta1, theta2, weight, bias, scale, shift]
        return [*attention, weight_in, bias_in, weight_out, bias_out, scale_out, shift_out]
