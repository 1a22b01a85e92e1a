"""Scaled depthwise convolution whose ψ is given once for all pairs of a kind, on a CPU.

    y_i = 1/|supp(i)| Σ_{j ∈ supp(i)} x_j ⊙ ψ_k(i,j)
    ∂x_j = Σ_{i: j ∈ supp(i)} ψ_k(i,j) ⊙ g_i/|supp(i)|        ∂ψ_u = Σ_{(i,j): k(i,j) = u} x_j ⊙ g_i/|supp(i)|

No tensor has a row for every pair: chunks of them are gathered into the same two buffers, multiplied and summed. Pairs
are sorted by receiver, and `Distinct` lists them kind by kind, so two of the three sums are over consecutive rows.
Higher derivatives are those of the convolution with ψ of every pair.

Legend: N nodes, P pairs, U kinds, D channels.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.ops.convolution import naive
from ckgconv.ops.convolution.segments import divisor, row_sums
from ckgconv.ops.derivatives import specification_gradients, will_be_differentiated
from ckgconv.ops.distinct.hashed import Distinct

CHUNK_BYTES = 2**21  # of the rows gathered at once


class Support(NamedTuple):
    """Which pairs are convolved, sorted by receiver."""

    receiver: Tensor  # [P]
    sender: Tensor  # [P]
    support_size: Tensor  # [N]
    rowptr: Tensor  # [N + 1] receiver i owns rows rowptr[i] … rowptr[i + 1] - 1


def distinct_convolution(x: Tensor, psi: Tensor, support: Support, rows: Distinct) -> Tensor:
    """y [N, D] of x [N, D] and ψ [U, D] of each kind, of one dtype."""
    return DistinctConvolution.apply(x, psi, support, rows)


class DistinctConvolution(torch.autograd.Function):
    """x, ψ, support, kinds → y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, psi: Tensor, support: Support, rows: Distinct) -> Tensor:
        ctx.save_for_backward(x, psi)
        ctx.support, ctx.rows = support, rows
        y, ends = torch.zeros_like(x), (support.sender, rows.kind)
        for pairs, messages in products((x, psi), ends):
            add_sums(y, messages, support.rowptr, pairs)
        return y.div_(divisor(support.support_size))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (x, psi), support, rows = ctx.saved_tensors, ctx.support, ctx.rows
        if will_be_differentiated(gradient):

            def formula(x: Tensor, psi: Tensor) -> Tensor:
                return naive.scaled_convolution(x, psi.index_select(0, rows.kind), *support[:3])

            return *specification_gradients(formula, (x, psi), ctx.needs_input_grad[:2], gradient), None, None
        pulled = gradient / divisor(support.support_size)
        gradient_x = gradient_psi = None
        if ctx.needs_input_grad[0]:
            gradient_x, ends = torch.zeros_like(x), (support.receiver, rows.kind)
            for pairs, messages in products((pulled, psi), ends):
                gradient_x.index_add_(0, support.sender[pairs], messages)
        if ctx.needs_input_grad[1]:
            gradient_psi = torch.zeros_like(psi)
            ends = support.sender.index_select(0, rows.order), support.receiver.index_select(0, rows.order)
            for pairs, messages in products((x, pulled), ends):
                add_sums(gradient_psi, messages, rows.pointer, pairs)
        return gradient_x, gradient_psi, None, None


def products(values: tuple[Tensor, Tensor], rows: tuple[Tensor, Tensor]) -> Iterator[tuple[slice, Tensor]]:
    """Products [r, D] of values [·, D] at two lists of rows [P], chunk by chunk of the lists.

    All chunks have the same memory, so each is valid until the next one.
    """
    count, width = rows[0].shape[0], values[0].shape[1]
    size = min(count, max(CHUNK_BYTES // max(width * values[0].element_size(), 1), 1))
    buffers = values[0].new_empty(2, size, width)
    for start in range(0, count, size):
        chunk = slice(start, min(start + size, count))
        one, other = (
            torch.index_select(value, 0, places[chunk], out=buffer[: chunk.stop - start])
            for value, places, buffer in zip(values, rows, buffers, strict=True)
        )
        yield chunk, one.mul_(other)


def add_sums(sums: Tensor, values: Tensor, pointer: Tensor, chunk: slice) -> None:
    """Add to sums [S, D] the rows [r, D] of a chunk; rows between consecutive pointers [S + 1] belong together."""
    first, last = torch.searchsorted(pointer, torch.tensor([chunk.start, chunk.stop - 1]), right=True).tolist()
    ends = pointer[first - 1 : last + 1].clamp(chunk.start, chunk.stop) - chunk.start
    sums[first - 1 : last] += row_sums(values, ends)
