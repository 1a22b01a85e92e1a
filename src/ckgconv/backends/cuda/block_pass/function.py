"""All blocks of a network as one function of torch: one wrapper for the passes of GINE, GPS and GatedGCN.

A pass is a pair of classes, one for each direction. The forward one returns x' and what the backward one reads again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass.options import EdgeLists
from ckgconv.ops.derivatives import first_derivatives_only


class Forward(Protocol):
    """One forward pass."""

    def __init__(self, x: Tensor, edges: Tensor, settings: Any, operands: Sequence[Tensor]) -> None: ...

    def run(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        """x' of the last block, and what the backward pass reads."""
        ...


class Backward(Protocol):
    """One backward pass."""

    def __init__(self, x: Tensor, edges: Tensor, settings: Any, operands: Sequence[Tensor]) -> None: ...

    def run(self, kept: Sequence[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        """∂x, ∂e and the gradients of the fields of every block."""
        ...


class Directions(NamedTuple):
    """A pass."""

    forward: type[Forward]
    backward: type[Backward]


class Operands(NamedTuple):
    """What a pass reads next to x and edges, without the fields of its blocks."""

    filled: Tensor  # [1] nodes from here on are padding
    seed: Tensor  # [1] of all masks
    lists: EdgeLists
    more: Sequence[Tensor] = ()  # what only some passes read; none has a gradient


def run_blocks(
    directions: Directions, x: Tensor, edges: Tensor, settings: Any, operands: Operands, blocks: Sequence[Any]
) -> Tensor:
    """x [N, D], edges [E, D] → x' of the last block [N, D], zero in padding; a block is a tuple of parameters."""
    fields = (field for each in blocks for field in each)
    given = (operands.filled, operands.seed, *operands.lists, *operands.more)
    found: Tensor = Blocks.apply(directions, settings, x, edges, *given, *fields)
    return found


class Blocks(torch.autograd.Function):
    """Directions, settings, x, edges, operands and the fields of each block → x'."""

    @staticmethod
    def forward(ctx: Any, directions: Directions, settings: Any, x: Tensor, edges: Tensor, *operands: Tensor) -> Tensor:
        x, edges = x.contiguous(), edges.contiguous()
        out, kept = directions.forward(x, edges, settings, operands).run()
        ctx.save_for_backward(x, edges, *kept, *operands)
        ctx.backward_pass, ctx.settings, ctx.kept = directions.backward, settings, len(kept)
        return out

    @staticmethod
    @first_derivatives_only("the block pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, edges, *saved = ctx.saved_tensors
        kept, operands = saved[: ctx.kept], saved[ctx.kept :]
        gx, ge, fields = ctx.backward_pass(x, edges, ctx.settings, operands).run(kept, gradient.contiguous())
        return None, None, gx, ge, *([None] * (len(operands) - len(fields))), *fields
