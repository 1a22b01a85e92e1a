"""Gradients of the matrices of all blocks, one launch for each shape, from factors that the pass has kept.

    ∂W = Σ_r g_r h_rᵀ        ∂b = Σ_r g_r

The product is that of `node_pass.gradients`: a program owns a tile of one matrix and some of the rows. Rows from
`filled` on are padding and not read.

Legend: K matrices of one shape, R rows, A and B channels of two factors, S parts.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.backends.cuda.node_pass.gradients import PIECE, SPAN, TILE, matrix_gradient
from ckgconv.ops.reductions import write_sums

Matrices = list[tuple[Tensor, Tensor]]  # ∂W [K, A, B] and ∂b [K, A] of each shape


class Factors(NamedTuple):
    """Both factors of the gradients of K matrices."""

    left: Tensor  # [K, R, A] g
    right: Tensor  # [K, R, B] h
    filled: Tensor  # [1] rows that count

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of the gradients of all matrices, and of their biases."""
        (count, _, wide), narrow = self.left.shape, self.right.shape[2]
        return (count, wide, narrow), (count, wide)


@triton.jit
def products(
    left, right, parts, bias_parts, part_stride, rows, filled, A: tl.constexpr, B: tl.constexpr,
    PRECISION: tl.constexpr, PIECE: tl.constexpr, SPAN: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Parts [K, A, B] of Σ g hᵀ and [K, A] of Σ g, over the filled rows."""
    matrix_gradient(
        left, right, parts, bias_parts, part_stride, rows, tl.load(filled).to(tl.int32), tl.program_id(1), A, B, A, B,
        PRECISION, PIECE, SPAN, TILE,
    )  # fmt: skip


def matrix_gradients(groups: Sequence[Factors], precision: str) -> Matrices:
    """∂W [K, A, B] and ∂b [K, A] of each group."""
    shapes = [shape for group in groups for shape in group.shapes]
    sizes = [prod(shape) for shape in shapes]
    # The same number of parts for all groups, so that no part is left unwritten.
    splits = max(-(-group.left.shape[1] // SPAN) for group in groups)
    parts = torch.empty(splits, sum(sizes), dtype=torch.float32, device=groups[0].left.device)
    views = iter(parts.split(sizes, dim=1))
    for group in groups:
        _launch(group, next(views), next(views), splits, precision)
    totals = torch.empty_like(parts[0])
    write_sums(parts, totals)
    found = iter(total.view(shape) for total, shape in zip(totals.split(sizes), shapes, strict=True))
    return [(next(found), next(found)) for _ in groups]


def _launch(group: Factors, weights: Tensor, biases: Tensor, splits: int, precision: str) -> None:
    count, rows, wide = group.left.shape
    narrow = group.right.shape[2]
    tiles = -(-wide // TILE) * -(-narrow // TILE)
    span = -(-rows // (splits * PIECE)) * PIECE
    products[(count, tiles, splits)](
        group.left, group.right, weights, biases, weights.stride(0), rows, group.filled, A=wide, B=narrow,
        PRECISION=precision, PIECE=PIECE, SPAN=span, TILE=TILE, num_stages=1,
    )  # fmt: skip
