"""All blocks of a network over its nodes, five or six Triton launches per block; the equations are in `naive`.

Kept for the backward pass: y, t and v of each block [N, D], and ψ. Everything else is recomputed.

Legend: L blocks, N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ckgconv.backends.cuda.node_pass.backward_pass import backward_pass
from ckgconv.backends.cuda.node_pass.forward_pass import forward_pass
from ckgconv.backends.cuda.node_pass.naive import Block, Lists
from ckgconv.backends.cuda.node_pass.options import Running, Settings
from ckgconv.ops.launch import product_precision

FIELDS = len(Block._fields)


def node_pass(
    x: Tensor,
    psi: Tensor,
    lists: Lists,
    blocks: Sequence[Block],
    running: Running,
    momentum: float,
    filled: Tensor | None,
    seed: Tensor,
    dropout: float,
    epsilon: float,
) -> tuple[Tensor, Tensor]:
    """x [N, D], ψ [L, P, D] → x' of the last block [N, D], and the moments [L, 2, 3, D] (W, μ, σ²) of both norms.

    Args:
        running: running statistics, which move by `momentum` towards those of the batch.
        filled: [1] integer, nodes from there on are padding and come out as zeros; None where all are real.
        seed: [1] int64, of the dropout masks.
    """
    settings = Settings(running, momentum, dropout, epsilon, _precision(x))
    fields = (field for each in blocks for field in each)
    return NodePass.apply(x.float(), psi, _filled(x, filled), seed, settings, *lists, *fields)


def evaluated_node_pass(
    x: Tensor,
    psi: Tensor,
    lists: Lists,
    blocks: Sequence[Block],
    running: Running,
    filled: Tensor | None,
    epsilon: float,
) -> Tensor:
    """The same with the running statistics in place of the batch's; without gradient."""
    settings = Settings(running, 0.0, 0.0, epsilon, _precision(x))
    filled = _filled(x, filled)
    return forward_pass(x.float().contiguous(), _rows_together(psi), filled, filled, settings, lists, blocks, None)[0]


class NodePass(torch.autograd.Function):
    """x, ψ, filled nodes, seed, settings, the support and the fields of each block → x', moments."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, psi: Tensor, filled: Tensor, seed: Tensor, settings: Settings, *rest: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, psi = x.contiguous(), _rows_together(psi)
        lists, blocks = _unpacked(rest)
        moments = torch.empty(len(blocks), 2, 3, x.shape[1], device=x.device)
        out, kept = forward_pass(x, psi, filled, seed, settings, lists, blocks, moments)
        ctx.save_for_backward(x, psi, filled, seed, moments, kept, *rest)
        ctx.settings = settings
        ctx.mark_non_differentiable(moments)
        ctx.set_materialize_grads(False)
        return out, moments

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        x, psi, filled, seed, moments, kept, *rest = ctx.saved_tensors
        lists, blocks = _unpacked(rest)
        gradient_x, gradient_psi, gradients = backward_pass(
            x, psi, filled, seed, ctx.settings, lists, blocks, moments, kept, gradient.contiguous()
        )
        fields = (field for each in blocks for field in each)
        shaped = [value.view_as(field) for value, field in zip(gradients, fields, strict=True)]
        return gradient_x, gradient_psi, None, None, None, *([None] * len(lists)), *shaped


def _precision(x: Tensor) -> str:
    """Nodes are few: under autocast the products take tf32, not bfloat16."""
    return "tf32" if torch.is_autocast_enabled(x.device.type) else product_precision()


def _filled(x: Tensor, filled: Tensor | None) -> Tensor:
    return torch.full((1,), x.shape[0], dtype=torch.int32, device=x.device) if filled is None else filled


def _unpacked(rest: Sequence[Tensor]) -> tuple[Lists, list[Block]]:
    fields = rest[len(Lists._fields) :]
    blocks = [Block(*fields[start : start + FIELDS]) for start in range(0, len(fields), FIELDS)]
    return Lists(*rest[: len(Lists._fields)]), blocks


def _rows_together(psi: Tensor) -> Tensor:
    """ψ [L, P, D] with the channels of a row side by side; rows may have more behind them."""
    return psi if psi.stride(2) == 1 and psi.stride(0) == psi.shape[1] * psi.stride(1) else psi.contiguous()
