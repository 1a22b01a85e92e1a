"""One layer of the attention pass as an autograd function; the specification is `nn.attention` and `nn.grit`.

A pair state between two layers is kept before its norm, z [P, D], next to the norm as an affine map [2, D] and the
moments [3, D] of z: whoever reads z applies the norm as it reads. The gradient of z is then that of BN(z), and the
gradient of the affine map holds its two sums, Σ g ẑ and Σ g, which the norm's own gradient needs.

Kept for the backward pass: z of every layer and what the nodes received. Pairs are computed again. Under autocast z is
float16, gradients are bfloat16; since torch casts a gradient to the dtype of its tensor, and small ones vanish in
float16, z is handed from layer to layer under the name of bfloat16, the same bits.

Legend: N nodes, P pairs, D width, H heads, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.attention_pass.backward_kernel import attend_backward, sum_by_sender
from ckgconv.backends.cuda.attention_pass.forward_kernel import attend, finish_norm
from ckgconv.backends.cuda.pairs_pass.backward import pitched
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import pitch, power_of_two, programs, threshold, tile_width
from ckgconv.ops.reductions import write_sums

ROWS, EXACT_ROWS = 32, 16  # of a tile; float32 operands of more rows spill, and as tf32 parts exceed shared memory
FORWARD_BUSY, BACKWARD_BUSY = 3, 2  # programs of an SM


class PairState(NamedTuple):
    """e = BN(z) of every pair, not yet applied."""

    z: Tensor  # [P, pitch of D], under the dtype of its gradient
    norm: Tensor | None = None  # [2, D] slope and offset; None: e = z
    moments: Tensor | None = None  # [3, D] W, μ, σ²; None where z has no norm, and in evaluation


class FirstState(torch.autograd.Function):
    """e [P, D] and the dtype of gradients → z of the first layer, which has no norm."""

    @staticmethod
    def forward(ctx: Any, e: Tensor, gradients: torch.dtype) -> Tensor:
        ctx.like = e.dtype, e.shape[1]
        return carried(stored(e, gradients), gradients)

    @staticmethod
    @first_derivatives_only("the attention pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        dtype, width = ctx.like
        return gradient[:, :width].to(dtype), None


def first_state(e: Tensor, gradients: torch.dtype) -> PairState:
    """The state of e [P, D]; gradients of pairs are stored in that dtype."""
    return PairState(FirstState.apply(e, gradients))


def stored(e: Tensor, gradients: torch.dtype) -> Tensor:
    """e [P, D] as z of the first layer, [P, pitch of D]."""
    return pitched(e).to(torch.float16 if gradients == torch.bfloat16 else torch.float32)


def carried(z: Tensor, gradients: torch.dtype) -> Tensor:
    """The bits of z under the dtype of its gradient."""
    return z.view(gradients)


def uncarried(z: Tensor) -> Tensor:
    """z as it is stored, from what `carried` returned."""
    return z.view(torch.float16) if z.dtype == torch.bfloat16 else z


class Lists(NamedTuple):
    """The support by receivers and by senders."""

    rowptr: Tensor  # [N + 1]
    sender: Tensor  # [P]
    sender_ptr: Tensor  # [N + 1]
    sender_rows: Tensor  # [P]
    sender_receiver: Tensor  # [P]
    filled: Tensor  # [1] rows from there on are padding


class Weights(NamedTuple):
    """Parameters of a layer that pairs meet."""

    pair: Tensor  # [2D, D] W and U of each head
    pair_bias: Tensor  # [2D]
    score: Tensor  # [H, D/H] A
    out: Tensor  # [D, D] O
    out_bias: Tensor  # [D]
    scale: Tensor  # [1, D] γ of the norm of the next state
    shift: Tensor  # [1, D] β


class AttentionSettings(NamedTuple):
    """What has no gradient."""

    running: tuple[Tensor, Tensor]  # of the norm of the next state
    momentum: float
    epsilon: float
    clamp: float
    dropout: float  # on attention weights
    state_dropout: float
    gradients: torch.dtype  # in which gradients of pairs are stored
    precision: str


class Attended(NamedTuple):
    """What a layer returns."""

    values: Tensor  # [N, D] Σ_j α_ij V h_j
    states: Tensor  # [N, D] Σ_j α_ij ê_ij
    state: PairState


def attention_layer(
    state: PairState,
    projected: tuple[Tensor, Tensor, Tensor],
    weights: Weights,
    lists: Lists,
    settings: AttentionSettings,
    seed: Tensor,
) -> Attended:
    """A layer in training; `projected` are Q h, K h and V h [N, D], `seed` [2] is that of its masks."""
    values, states, z, norm, moments = AttentionLayer.apply(
        state.z, state.norm, state.moments, lists, settings, seed, *projected, *weights
    )
    return Attended(values, states, PairState(z, norm, moments))


def evaluated_layer(
    state: PairState,
    projected: tuple[Tensor, Tensor, Tensor],
    weights: Weights,
    lists: Lists,
    settings: AttentionSettings,
) -> Attended:
    """A layer with the running statistics in place of the batch's; without gradient."""
    settings = settings._replace(dropout=0.0, state_dropout=0.0)
    forward = Forward(state._replace(z=uncarried(state.z)), lists, settings, projected, weights)
    received = forward.nodes_like(3).unbind()
    z = carried(forward.run(None, lists.filled, received), settings.gradients)
    values, states, _ = received
    mean, variance = (each.squeeze(0) for each in settings.running)
    slope = weights.scale.squeeze(0) * torch.rsqrt(variance + settings.epsilon)
    return Attended(values, states, PairState(z, torch.stack([slope, weights.shift.squeeze(0) - mean * slope])))


class Direction:
    """One direction of a layer: its operands; z of the state as it is stored."""

    def __init__(
        self,
        state: PairState,
        lists: Lists,
        settings: AttentionSettings,
        projected: tuple[Tensor, ...],
        weights: Weights,
    ) -> None:
        self.z, self.norm, self.moments = state
        self.lists, self.settings, self.weights = lists, settings, weights
        self.projected = tuple(each.contiguous() for each in projected)
        self.nodes, self.width = self.projected[0].shape

    def nodes_like(self, count: int) -> Tensor:
        """Uninitialised float32 [count, N, D]."""
        return self.z.new_empty(count, self.nodes, self.width, dtype=torch.float32)


class Forward(Direction):
    """The launch of one layer forward."""

    def parts(self) -> Tensor:
        """Uninitialised parts [3, S, D] of the moments of the next z."""
        return self.z.new_empty(3, splits_of(self.z, self.nodes, FORWARD_BUSY), self.width, dtype=torch.float32)

    def run(self, parts: Tensor | None, seed: Tensor, received: Sequence[Tensor]) -> Tensor:
        """The next z, its moments in `parts`; values, states and totals [N, D] are written to `received`."""
        values, states, totals = received
        z_next = torch.empty_like(self.z)
        splits = splits_of(self.z, self.nodes, FORWARD_BUSY) if parts is None else parts.shape[1]
        lists, weights = self.lists, self.weights
        if self.nodes:
            attend[(splits,)](
                self.z, self.norm, *self.projected, lists.rowptr, lists.sender, lists.filled, weights.pair,
                weights.pair_bias, weights.score, weights.out, weights.out_bias, values, states, totals, z_next,
                self.settings.running[0], parts, self.nodes, seed, **masks(self.settings), splits=splits,
                NORMED=self.norm is not None, TRACK=parts is not None,
                **constants(self.z, self.width, weights, self.settings), num_warps=4, num_stages=1,
            )  # fmt: skip
        return z_next

    def finish(self, parts: Tensor, norm: Tensor, moments: Tensor) -> None:
        """Write the norm [2, D] of the next z and its moments [3, D]; running statistics move."""
        weights, settings = self.weights, self.settings
        finish_norm[(1,)](
            parts, weights.scale, weights.shift, *settings.running, settings.momentum, settings.epsilon, parts.shape[1],
            moments, norm, D=self.width, BLOCK_D=tile_width(self.width), PARTS=power_of_two(parts.shape[1]),
        )  # fmt: skip


class AttentionLayer(torch.autograd.Function):
    """z, its norm and moments, lists, settings, seed, Q h, K h, V h and the weights → values, states, the next z."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        norm: Tensor | None,
        moments: Tensor | None,
        lists: Lists,
        settings: AttentionSettings,
        seed: Tensor,
        *fields: Tensor,
    ) -> tuple[Tensor, ...]:
        z, weights = uncarried(z), Weights(*fields[3:])
        forward = Forward(PairState(z, norm, moments), lists, settings, fields[:3], weights)
        parts, received = forward.parts(), forward.nodes_like(3).unbind()
        z_next = forward.run(parts, seed, received)
        next_norm, next_moments = parts.new_empty(2, forward.width), parts.new_empty(3, forward.width)
        forward.finish(parts, next_norm, next_moments)
        values, states, _ = received
        ctx.save_for_backward(
            z, norm, moments, *lists, seed, *forward.projected, *weights, *received, z_next, next_moments
        )
        ctx.settings = settings
        ctx.mark_non_differentiable(next_moments)
        ctx.set_materialize_grads(False)
        return values, states, carried(z_next, settings.gradients), next_norm, next_moments

    @staticmethod
    @first_derivatives_only("the attention pass on a GPU")
    def backward(
        ctx: Any, pull_values: Tensor | None, pull_states: Tensor | None, g: Tensor | None, sums: Tensor | None, _: Any
    ) -> tuple[Tensor | None, ...]:
        z, norm, moments, *rest = ctx.saved_tensors
        lists, seed, projected = Lists(*rest[:6]), rest[6], rest[7:10]
        weights, kept = Weights(*rest[10:17]), rest[17:]
        backward = Backward(PairState(z, norm, moments), lists, ctx.settings, projected, weights)
        pulls = [pull_of(each, kept[0]) for each in (pull_values, pull_states)]
        at_projected = backward.nodes_like(3).unbind()
        gz, at_norm, at_weights = backward.run(seed, kept, pulls, g, sums, at_projected)
        return gz, at_norm, None, None, None, None, *at_projected, *at_weights


class Backward(Direction):
    """The launches of one layer backward."""

    def run(
        self,
        seed: Tensor,
        kept: Sequence[Tensor],
        pulls: Sequence[Tensor],
        g: Tensor | None,
        sums: Tensor | None,
        at_projected: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor | None, list[Tensor | None]]:
        """Gradients of z, of its norm [2, D] where it has one, and of the weights.

        Args:
            kept: values, states, totals, next z and its moments.
            pulls: gradients at values and states [N, D].
            g: gradient at BN of the next z, with its `sums` [2, D]; None where no layer read it.
            at_projected: where the gradients of Q h, K h and V h [N, D] are written.
        """
        width, weights, lists = self.width, self.weights, self.lists
        continued = g is not None and sums is not None
        values, states, totals, z_next, next_moments = kept
        splits = splits_of(self.z, self.nodes, BACKWARD_BUSY)
        # W and U with their biases, A; O with its bias where a later layer reads; the sums of the norm where z has one.
        sizes = [weights.pair.numel(), 2 * width, width, *([width * width, width] if continued else [0, 0])]
        sizes.append(0 if self.norm is None else 2 * width)
        parts = self.z.new_empty(splits, sum(sizes), dtype=torch.float32)
        views = parts.split(sizes, dim=1)
        # Padding of the first state flows on into sums over all rows.
        allocate = torch.empty if self.norm is not None else torch.zeros
        gz = allocate(self.z.shape, dtype=self.settings.gradients, device=self.z.device)
        g_both = torch.empty(self.z.shape, dtype=self.settings.gradients, device=self.z.device)
        alpha = self.z.new_empty(self.z.shape[0], weights.score.shape[0], dtype=torch.float32)
        gq, gk, gv = at_projected
        if self.nodes:
            attend_backward[(splits,)](
                self.z, self.norm, self.moments, *self.projected, lists.rowptr, lists.sender, lists.filled,
                weights.pair, weights.pair_bias, weights.score, weights.out, values, states, totals, *pulls, g, sums,
                z_next, next_moments, weights.scale, gz, gq, g_both, alpha, *views, parts.stride(0), self.nodes, seed,
                **masks(self.settings), epsilon=self.settings.epsilon, splits=splits, NORMED=self.norm is not None,
                CONTINUED=continued, **constants(self.z, width, weights, self.settings), num_warps=8,
                num_stages=1,
            )  # fmt: skip
            sum_by_sender[(self.nodes,)](
                g_both, alpha, pulls[0], lists.sender_ptr, lists.sender_rows, lists.sender_receiver, lists.filled, gk,
                gv, D=width, HEADS=weights.score.shape[0], PITCH=pitch(width), BLOCK_R=ROWS,
                BLOCK_D=tile_width(width), num_warps=4,
            )  # fmt: skip
        summed = torch.empty(parts.shape[1], dtype=torch.float32, device=parts.device)
        write_sums(parts, summed)
        pair, pair_bias, score, out, out_bias, gz_sums = summed.split(sizes)
        at_weights: list[Tensor | None] = [pair.view_as(weights.pair), pair_bias, score.view_as(weights.score)]
        at_weights += [out.view_as(weights.out), out_bias] if continued else [None, None]
        at_weights += [sums[0:1], sums[1:2]] if sums is not None else [None, None]
        at_norm = gz_sums.view(2, width) if self.norm is not None else None
        return gz, at_norm, at_weights


def masks(settings: AttentionSettings) -> dict[str, Any]:
    """Arguments of both dropouts and of the clamp."""
    level, factor = threshold(settings.dropout)
    state_level, state_factor = threshold(settings.state_dropout)
    return {
        "threshold": level,
        "factor": factor,
        "state_threshold": state_level,
        "state_factor": state_factor,
        "clamp": settings.clamp,
        "DROP": settings.dropout > 0,
        "DROP_STATE": settings.state_dropout > 0,
    }


def constants(z: Tensor, width: int, weights: Weights, settings: AttentionSettings) -> dict[str, Any]:
    """What both directions are compiled for."""
    return {
        "D": width,
        "HEADS": weights.score.shape[0],
        "PITCH": pitch(width),
        "PRECISION": settings.precision,
        "BLOCK_R": ROWS if z.dtype == torch.float16 else EXACT_ROWS,
        "BLOCK_D": tile_width(width),
    }


def splits_of(z: Tensor, nodes: int, busy: int) -> int:
    """S: programs that fill the device, but none without a receiver."""
    return max(1, min(programs(z, busy), nodes))


def pull_of(gradient: Tensor | None, like: Tensor) -> Tensor:
    """A gradient [N, D], zero where there is none."""
    return torch.zeros_like(like) if gradient is None else gradient.contiguous()
