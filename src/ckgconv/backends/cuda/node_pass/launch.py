"""All blocks of a network over its nodes, five or six Triton launches per block; the specification is `nn.block`.

    y_i = 1/|supp(i)| Σ_{j ∈ supp(i)} x_j ⊙ ψ_ij
    t   = x + a drop( W (y ⊙ θ₁ + √d y ⊙ θ₂) + b )      u  = BN(t)        a_i is 1, or drawn for graph and block
    v   = u + a drop( W₂ GELU(W₁ u + b₁) + b₂ )          x' = BN(v)

Kept for the backward pass: y, t and v of each block [N, D], and ψ. Everything else is recomputed.

Legend: L blocks, N nodes, P pairs, D width.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.backward import Backward
from ckgconv.backends.cuda.node_pass.forward import Forward
from ckgconv.backends.cuda.node_pass.options import Block, Dropout, Lists, NormStatistics, Settings
from ckgconv.backends.cuda.streams import Streams
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import product_precision

FIELDS = len(Block._fields)


def settings_of(x: Tensor, running: NormStatistics, norm: WeightedBatchNorm, streams: Streams) -> Settings:
    """The settings of a pass over x: nodes are few, so under autocast products use tf32, not bfloat16."""
    precision = "tf32" if torch.is_autocast_enabled(x.device.type) else product_precision()
    return Settings(running, norm.momentum, norm.epsilon, precision, streams)


def node_pass(
    x: Tensor,
    psi: Tensor,
    lists: Lists,
    blocks: Sequence[Block],
    settings: Settings,
    filled: Tensor | None,
    dropout: Dropout,
) -> tuple[Tensor, Tensor]:
    """x [N, D], ψ [L, P, D] → x' of the last block [N, D], and the moments [L, 2, 3, D] (W, μ, σ²) of both norms.

    `filled` [1]: nodes from there on are padding and zero in the result; None where all are real.
    """
    fields = (field for each in blocks for field in each)
    return NodePass.apply(x.float(), psi, _filled(x, filled), dropout, settings, *lists, *fields)


def evaluated_node_pass(
    x: Tensor, psi: Tensor, lists: Lists, blocks: Sequence[Block], settings: Settings, filled: Tensor | None
) -> Tensor:
    """The same with the running statistics in place of the batch's; without gradient."""
    filled = _filled(x, filled)
    x, psi = x.float().contiguous(), _dense_rows(psi)
    out, _ = Forward(x, psi, lists, blocks, settings, filled, Dropout(filled, 0.0)).run(None)
    return out


class NodePass(torch.autograd.Function):
    """x, ψ, filled nodes, dropout, settings, the support and the fields of each block → x', moments."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, psi: Tensor, filled: Tensor, dropout: Dropout, settings: Settings, *rest: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, psi = x.contiguous(), _dense_rows(psi)
        lists, blocks = _unpacked(rest)
        moments = torch.empty(len(blocks), 2, 3, x.shape[1], dtype=torch.float32, device=x.device)
        out, kept = Forward(x, psi, lists, blocks, settings, filled, dropout).run(moments)
        ctx.save_for_backward(x, psi, filled, dropout.seed, dropout.paths, moments, kept, *rest)
        ctx.settings, ctx.probability = settings, dropout.probability
        ctx.mark_non_differentiable(moments)
        ctx.set_materialize_grads(False)
        return out, moments

    @staticmethod
    @first_derivatives_only("the node pass on a GPU")
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        x, psi, filled, seed, paths, moments, kept, *rest = ctx.saved_tensors
        lists, blocks = _unpacked(rest)
        dropout = Dropout(seed, ctx.probability, paths)
        backward = Backward(x, psi, lists, blocks, ctx.settings, filled, dropout)
        gradient_x, gradient_psi, gradients = backward.run(moments, kept, gradient.contiguous())
        fields = (field for each in blocks for field in each)
        shaped = [value.view_as(field) for value, field in zip(gradients, fields, strict=True)]
        return gradient_x, gradient_psi, None, None, None, *([None] * len(lists)), *shaped


def _filled(x: Tensor, filled: Tensor | None) -> Tensor:
    return torch.full((1,), x.shape[0], dtype=torch.int32, device=x.device) if filled is None else filled


def _unpacked(rest: Sequence[Tensor]) -> tuple[Lists, list[Block]]:
    fields = rest[len(Lists._fields) :]
    blocks = [Block(*fields[start : start + FIELDS]) for start in range(0, len(fields), FIELDS)]
    return Lists(*rest[: len(Lists._fields)]), blocks


def _dense_rows(psi: Tensor) -> Tensor:
    """ψ [L, P, D] with contiguous channels; rows may have a pitch."""
    return psi if psi.stride(2) == 1 and psi.stride(0) == psi.shape[1] * psi.stride(1) else psi.contiguous()
