"""What follows the attention in a block of GRIT, in three launches forward; the specification is `nn.grit`.

    t = x + W (y ⊙ θ₁ + log(1 + d) y ⊙ θ₂) + b         u  = BN(t)
    v = u + W₂ ReLU(W₁ u + b₁) + b₂                     x' = BN(v)

Sum and projection are launches of the node pass, whose √d is given log²(1 + d) in place of d.

Legend: N nodes, D width, H hidden width, S parts (programs).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass.feed_forward import backward_ffn, forward_ffn
from ckgconv.backends.cuda.block_pass.gradients import Factors, matrix_gradients
from ckgconv.backends.cuda.block_pass.options import Settings, Sizes, dropout_arguments
from ckgconv.backends.cuda.node_pass.aggregate import project
from ckgconv.backends.cuda.node_pass.backward_kernels import backward_projection, norm_sums
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.node_pass.options import NODES, Block
from ckgconv.backends.cuda.node_pass.tail import Nodes
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import block as tile_of
from ckgconv.ops.reductions import summed

NO_NORM = (None,) * 7
NO_PATH = {"path": None, "PATH": False}


class Kept(NamedTuple):
    """What the backward pass reads."""

    narrow: Tensor  # [3, N, D] t, u, v
    hidden: Tensor  # [N, H]
    moments: Tensor  # [2, 3, D] of t and v


def relu_tail(x: Tensor, y: Tensor, fields: Block, nodes: Nodes, settings: Settings) -> Tensor:
    """x' [N, D], zero in padding, from x before the block and what the attention returned, y, both [N, D]."""
    return ReLUTail.apply(x.float(), y.float(), nodes, settings, *fields)


class ReLUTail(torch.autograd.Function):
    """x, y, nodes, settings and the fields of the block → x'."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, nodes: Nodes, settings: Settings, *fields: Tensor) -> Tensor:
        x, y = x.contiguous(), y.contiguous()
        out, kept = forward_tail(x, y, nodes, settings, Block(*fields))
        ctx.save_for_backward(y, *kept, *nodes, *fields)
        ctx.settings = settings
        return out

    @staticmethod
    @first_derivatives_only("the block pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        y, narrow, hidden, moments, degree, ones, filled, *fields = ctx.saved_tensors
        kept, nodes = Kept(narrow, hidden, moments), Nodes(degree, ones, filled)
        gx, gy, gradients = backward_tail(gradient.contiguous(), y, kept, nodes, ctx.settings, Block(*fields))
        shaped = [value.view_as(field) for value, field in zip(gradients, fields, strict=True)]
        return gx, gy, None, None, *shaped


def forward_tail(x: Tensor, y: Tensor, nodes: Nodes, settings: Settings, each: Block) -> tuple[Tensor, Kept]:
    """x', and what is kept."""
    sizes, (running, running_out) = Sizes(x, each.weight_in.shape[0], settings), settings.running[0]
    parts = sizes.empty(2, 3, sizes.splits, sizes.width)
    kept = Kept(
        sizes.empty(3, sizes.nodes, sizes.width),
        sizes.empty(sizes.nodes, sizes.hidden),
        sizes.empty(2, 3, sizes.width),
    )
    (t, u, v), out = kept.narrow, torch.empty_like(x)
    masks = {"filled": nodes.filled, "seed": nodes.filled, **dropout_arguments(0.0, 0)}
    without_norm = {name: value for name, value in sizes.tile.items() if name != "epsilon"}
    project[(sizes.splits,)](
        x, y, nodes.degree, each.theta1, each.theta2, each.weight, each.bias, t, parts[0], **masks, **NO_PATH,
        **without_norm, splits=sizes.splits, TRACK=True, PRECISION=settings.precision,
    )  # fmt: skip
    forward_ffn[(sizes.splits,)](
        t, parts[0], kept.moments[0], *running, each.scale, each.shift, *NO_NORM, settings.momentum, each.weight_in,
        each.bias_in, each.weight_out, each.bias_out, u, kept.hidden, v, parts[1], **masks, **sizes.tile, **sizes.ffn,
        **sizes.norms, TWO=False, HIDDEN=tile_of(sizes.hidden),
    )  # fmt: skip
    apply_norm[(sizes.splits,)](
        v, parts[1], kept.moments[1], *running_out, settings.momentum, each.scale_out, each.shift_out, out, None,
        nodes.filled, N=sizes.nodes, GIVEN=False, WEIGHTED=False, TILE=NODES, **sizes.norms, **sizes.tile,
    )  # fmt: skip
    return out, kept


def backward_tail(
    gradient: Tensor, y: Tensor, kept: Kept, nodes: Nodes, settings: Settings, each: Block
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """∂x, ∂y and the gradients of the fields."""
    sizes, (t, u, v), moments = Sizes(y, each.weight_in.shape[0], settings), kept.narrow, kept.moments
    sums = sizes.empty(sizes.splits, 6, sizes.width)  # Σg and Σ g t̂ of both norms, ∂θ₁, ∂θ₂
    # Zero in padding: sums over all N rows may follow.
    residual, gy = torch.zeros(2, sizes.nodes, sizes.width, device=y.device)
    out, projected, scaled = sizes.empty(3, 1, sizes.nodes, sizes.width)
    hidden = sizes.empty(1, sizes.nodes, sizes.hidden)
    masks = {"filled": nodes.filled, "seed": nodes.filled, **dropout_arguments(0.0, 0)}
    common = {**sizes.tile, "part_stride": sums.stride(0)}
    norm_sums[(sizes.splits,)](gradient, v, moments[1], sums[0, 2], filled=nodes.filled, splits=sizes.splits, **common)
    backward_ffn[(sizes.splits,)](
        gradient, v, moments[1], each.scale_out, sums[0, 2], sums.stride(0), sizes.splits, kept.hidden,
        each.weight_in, each.weight_out, out, hidden, residual, t, moments[0], sums, None, None, None, **masks,
        **common, **sizes.ffn, TWO=False, V_PARTS=sizes.parts,
    )  # fmt: skip
    backward_projection[(sizes.splits,)](
        residual, t, moments[0], each.scale, sums, sums.stride(0), y, nodes.ones, nodes.degree, each.theta1,
        each.theta2, each.weight, residual, projected, scaled, gy, sums[0, 4], **masks, **NO_PATH, **sizes.tile,
        **sizes.norms, N=sizes.nodes, PITCH=sizes.width, PRECISION=settings.precision, EARLY=False,
    )  # fmt: skip
    groups = [
        Factors(projected, scaled, nodes.filled),
        Factors(hidden, u.unsqueeze(0), nodes.filled),
        Factors(out, kept.hidden.unsqueeze(0), nodes.filled),
    ]
    (weight, bias), *feed_forward = matrix_gradients(groups, settings.precision)
    shift, scale, shift_out, scale_out, theta1, theta2 = summed(sums).unbind(0)
    inner = [value for pair in feed_forward for value in pair]
    return residual, gy, [theta1, theta2, weight, bias, scale, shift, *inner, scale_out, shift_out]
