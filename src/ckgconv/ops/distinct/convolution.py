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
from ckgconv.ops.derivatives import differentiated, of_specification
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
        y, ends = torch.empty_like(x), (support.sender, rows.kind)
        for messages, pairs, receivers in products((x, psi), ends, support.rowptr):
            y[receivers] = row_sums(messages, support.rowptr[receivers.start : receivers.stop + 1] - pairs.start)
        return y.div_(divisor(support.support_size))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (x, psi), support, rows = ctx.saved_tensors, ctx.support, ctx.rows
        if differentiated(gradient):

            def formula(x: Tensor, psi: Tensor) -> Tensor:
                return naive.scaled_convolution(x, psi.index_select(0, rows.kind), *support[:3])

            return *of_specification(formula, (x, psi), ctx.needs_input_grad[:2], gradient), None, None
        pulled = gradient / divisor(support.support_size)
        gradient_x = gradient_psi = None
        if ctx.needs_input_grad[0]:
            gradient_x, ends = torch.zeros_like(x), (support.receiver, rows.kind)
            for messages, pairs, _ in products((pulled, psi), ends, support.rowptr):
                gradient_x.index_add_(0, support.sender[pairs], messages)
        if ctx.needs_input_grad[1]:
            gradient_psi = torch.empty_like(psi)
            ends = support.sender.index_select(0, rows.order), support.receiver.index_select(0, rows.order)
            for messages, pairs, kinds in products((x, pulled), ends, rows.pointer):
                gradient_psi[kinds] = row_sums(messages, rows.pointer[kinds.start : kinds.stop + 1] - pairs.start)
        return gradient_x, gradient_psi, None, None


def products(
    values: tuple[Tensor, Tensor], rows: tuple[Tensor, Tensor], pointer: Tensor
) -> Iterator[tuple[Tensor, slice, slice]]:
    """Products [r, D] of values [·, D] at two lists of rows [P], chunk by chunk, valid until the next one.

    With each come its range of the lists and that of its segments, which lie between consecutive pointers [S + 1]. A
    chunk has about `CHUNK_BYTES`, or one segment.
    """
    width = values[0].shape[1]
    ranges = chunks(pointer, max(CHUNK_BYTES // max(width * values[0].element_size(), 1), 1))
    longest = max((pairs.stop - pairs.start for pairs, _ in ranges), default=0)
    buffers = values[0].new_empty(2, longest, width)
    for pairs, segments in ranges:
        one, other = (
            torch.index_select(value, 0, places[pairs], out=buffer[: pairs.stop - pairs.start])
            for value, places, buffer in zip(values, rows, buffers, strict=True)
        )
        yield one.mul_(other), pairs, segments


def chunks(pointer: Tensor, size: int) -> list[tuple[slice, slice]]:
    """Ranges of about `size` rows, each of whole segments, and of these segments."""
    count, last = int(pointer[-1]), pointer.shape[0] - 1
    steps = torch.arange(size, max(count, size), size)
    inner = torch.searchsorted(pointer, steps, right=True).sub_(1).tolist()
    places = sorted({0, *inner, last})
    starts = pointer[places].tolist()
    return [(slice(*starts[place : place + 2]), slice(*places[place : place + 2])) for place in range(len(places) - 1)]
