"""Distinct rows by a 64-bit hash per row: sorting hashes is 100 times faster than sorting rows.

Rows are equal where all their bits are. If different rows have one hash, which a comparison detects, every row counts
as distinct.

Legend: R rows, U distinct rows, D channels, W words of 64 bits.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.ops.convolution.segments import row_sums
from ckgconv.ops.derivatives import will_be_differentiated
from ckgconv.ops.precision import widened

SEED = 0


class Distinct(NamedTuple):
    """Which rows are equal."""

    representative: Tensor  # [U] one row of each kind
    kind: Tensor  # [R] of every row, 0 … U - 1
    order: Tensor  # [R] the rows, kind by kind
    pointer: Tensor  # [U + 1] where each kind begins in `order`

    @property
    def copies(self) -> Tensor:
        """[U] rows of each kind."""
        return self.pointer.diff()


def distinct_rows(*columns: Tensor) -> Distinct | None:
    """Of tensors [R, …] side by side, float32, float64 or int64; None where all rows differ."""
    words = [_words(part) for part in columns]
    numbers, order = row_numbers(words).sort()
    first = torch.ones_like(numbers, dtype=torch.bool)
    torch.ne(numbers[1:], numbers[:-1], out=first[1:])
    begin = first.nonzero().squeeze(1)
    if len(begin) == len(numbers):
        return None
    representative = order.index_select(0, begin)
    kind = torch.empty_like(order).scatter_(0, order, first.cumsum(0).sub_(1))
    same = representative.index_select(0, kind)
    if not all(torch.equal(part.index_select(0, same), part) for part in words):
        return None
    return Distinct(representative, kind, order, torch.cat([begin, begin.new_full((1,), len(numbers))]))


def row_numbers(words: list[Tensor]) -> Tensor:
    """[R] int64, equal for equal rows of int64 [R, W]: a sum of words, each scrambled by two numbers of its column.

    By one product, words that differ in few leading bits, as those of simple fractions do, would differ in few bits.
    """
    generator = torch.Generator().manual_seed(SEED)
    number = torch.zeros(words[0].shape[0], dtype=torch.int64)
    for part in words:
        first, second = torch.randint(-(2**62), 2**62, (2, part.shape[1]), generator=generator).mul_(2).add_(1)
        scrambled = part * first
        scrambled ^= scrambled >> 32
        number += scrambled.mul_(second).sum(1)
    return number


def _words(values: Tensor) -> Tensor:
    """[R, W] int64, two float32 in each; where their number is odd, the last word has a zero."""
    values = values.flatten(1).contiguous() if values.dim() > 1 else values.unsqueeze(-1)
    if values.dtype == torch.float32 and values.shape[1] % 2:
        values = torch.nn.functional.pad(values, (0, 1))
    return values.view(torch.int64)


class Spread(torch.autograd.Function):
    """Values of distinct rows → values of all rows; the gradient is the sum over equal rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, rows: Distinct) -> Tensor:
        ctx.rows = rows
        return values.index_select(0, rows.kind)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        rows: Distinct = ctx.rows
        wide = widened(gradient)
        if will_be_differentiated(gradient):
            zeros = torch.zeros(len(rows.representative), wide.shape[-1], dtype=wide.dtype)
            summed = zeros.index_add(0, rows.kind, wide)
        else:
            summed = row_sums(wide, rows.pointer, rows.order)
        return summed.to(gradient.dtype), None
