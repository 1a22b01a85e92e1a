"""The kernels ψ of all layers as one Triton launch per stage; the specification is `nn.kernel`.

Kept for the backward pass: x and the output of every stage but the last. Normalised and activated values and dropout
masks are recomputed. Under autocast ψ and gradients are bfloat16, values between stages float16.

Rows of all large tensors lie a multiple of 16 bytes apart; ψ and the gradients are views of their channels.

Legend: L layers, R rows, K channels in, D channels out.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.pairs_pass.backward import Backward, pitched
from ckgconv.backends.cuda.pairs_pass.forward import Forward
from ckgconv.backends.cuda.pairs_pass.options import Dropout, Rows, Settings
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.kernel_mlp import FIELDS, Stage, grouped
from ckgconv.ops.launch import pitch


def kernel_mlp(
    x: Tensor,
    stages: Sequence[Stage],
    settings: Settings,
    rows: Rows,
    dropout: Dropout,
    x_part: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """ψ [L, R, D] of x [R, K] in training, and the moments [2B + 1, 3, L, K] (W, μ, σ²) of each stage's input.

    `x_part` [3, K] holds W, μ and M₂ of x, where they are known.
    """
    fields = (field for stage in stages for field in stage)
    return KernelMLP.apply(x, x_part, rows, dropout, settings, *fields)


def evaluated_kernel_mlp(x: Tensor, stages: Sequence[Stage], settings: Settings, rows: Rows) -> Tensor:
    """ψ [L, R, D] with the running statistics in place of the batch's; without gradient."""
    dropout = Dropout(rows.filled, 0.0, 0.0, x.shape[0])
    outputs = Forward(pitched(x), stages, settings, rows._replace(weight=None), dropout).run(None, None)
    return outputs[-1][..., : stages[-1].bias.shape[1]]


class KernelMLP(torch.autograd.Function):
    """x and its moments, rows, dropout, settings and four fields of each stage → ψ, moments."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, x_part: Tensor | None, rows: Rows, dropout: Dropout, settings: Settings, *fields: Tensor
    ) -> tuple[Tensor, Tensor]:
        x = pitched(x)
        stages = grouped(fields)
        layers, channels = stages[0].scale.shape
        moments = x.new_empty(len(stages), 3, layers, channels, dtype=torch.float32)
        outputs = Forward(x, stages, settings, rows, dropout).run(moments, x_part)
        ctx.save_for_backward(x, *rows, dropout.seed, moments, *fields, *outputs[:-1])
        ctx.settings, ctx.dropout = settings, dropout
        ctx.mark_non_differentiable(moments)
        ctx.set_materialize_grads(False)
        return outputs[-1][..., : stages[-1].bias.shape[1]], moments

    @staticmethod
    @first_derivatives_only("the pairs pass on a GPU")
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, filled, seed, moments, *rest = ctx.saved_tensors
        # S stages have 4 S fields and S - 1 kept outputs.
        stages = grouped(rest[: FIELDS * ((len(rest) + 1) // (FIELDS + 1))])
        outputs = rest[FIELDS * len(stages) :]
        dropout, rows = ctx.dropout._replace(seed=seed), Rows(weight, filled)
        backward = Backward(x, stages, ctx.settings, rows, dropout)
        gradient_x, gradients = backward.run(moments, outputs, _whole(gradient))
        return gradient_x, None, None, None, None, *gradients


def _whole(gradient: Tensor) -> Tensor:
    """∂ψ [L, R, D] in rows of its pitch: the node pass returns a view of such a tensor."""
    base, wide = gradient._base, pitch(gradient.shape[-1])
    if base is not None and base.shape == (*gradient.shape[:-1], wide) and base.stride() == gradient.stride():
        return base
    return pitched(gradient)
