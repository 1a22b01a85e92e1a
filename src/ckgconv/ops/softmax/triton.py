"""Softmax over the support of each receiver, times its size: all layers in one Triton launch each way.

    a_ij = |supp(i)| exp(ψ_ij) / Σ_j' exp(ψ_ij')        ∂ψ_ij = a_ij ( g_ij - 1/|supp(i)| Σ_j' a_ij' g_ij' )

A program owns one receiver of one layer, whose rows are contiguous; it reads them twice, the second time from cache.

Legend: L layers, N nodes, P pairs, D channels.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import pitch, power_of_two

ROWS = 32  # at once


def summing_softmax(psi: Tensor, rowptr: Tensor, support_size: Tensor, filled: Tensor | None) -> Tensor:
    """[L, P, D] from [L, P, D], rows of receiver i from rowptr[i] to rowptr[i + 1]; see `naive`.

    Args:
        filled: [1] integer, rows from there on are padding: neither read nor written; None where all are real.
    """
    filled = rowptr[-1:] if filled is None else filled
    return SummingSoftmax.apply(psi, rowptr.contiguous(), support_size.float().contiguous(), filled)


class SummingSoftmax(torch.autograd.Function):
    """ψ, pointers, sizes, filled rows → a."""

    @staticmethod
    def forward(ctx: Any, psi: Tensor, rowptr: Tensor, size: Tensor, filled: Tensor) -> Tensor:
        psi = psi if psi.stride(2) == 1 else psi.contiguous()
        out = _rows_like(psi)
        if len(size):
            strides = psi.stride(0), out.stride(0)
            softmax_rows[(len(size), len(psi))](
                psi, rowptr, size, filled, out, *strides, PITCH=psi.stride(1), **_constants(psi)
            )
        ctx.save_for_backward(out, rowptr, size, filled)
        return out

    @staticmethod
    @first_derivatives_only("the softmax of all layers on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        out, rowptr, size, filled = ctx.saved_tensors
        gradient = gradient if gradient.stride(2) == 1 else gradient.contiguous()
        pulled = _rows_like(out)
        if len(size):
            strides = gradient.stride(0), out.stride(0)
            softmax_gradient[(len(size), len(out))](
                gradient, out, rowptr, size, filled, pulled, *strides, PITCH=gradient.stride(1), **_constants(out)
            )
        return pulled, None, None, None


def _rows_like(psi: Tensor) -> Tensor:
    """[L, P, D] uninitialised, rows of its pitch."""
    layers, rows, width = psi.shape
    return torch.empty(layers, rows, pitch(width), dtype=psi.dtype, device=psi.device)[..., :width]


def _constants(psi: Tensor) -> dict[str, int]:
    width = psi.shape[2]
    return {"OUT_PITCH": pitch(width), "D": width, "ROWS": ROWS, "BLOCK_D": power_of_two(pitch(width))}


@triton.jit
def owned_rows(rowptr, filled):
    """The receiver and the layer of a program, and the first and last row of the receiver, without padding."""
    node, layer = tl.program_id(0), tl.program_id(1).to(tl.int64)
    begin = tl.load(rowptr + node).to(tl.int32)
    return node, layer, begin, tl.minimum(tl.load(rowptr + node + 1), tl.load(filled)).to(tl.int32)


@triton.jit
def read_rows(source, row, end, columns, other, PITCH: tl.constexpr, D: tl.constexpr):
    """[ROWS, BLOCK_D] values, `other` beyond the last row and the last channel."""
    inside = (row < end)[:, None] & (columns < D)[None, :]
    return tl.load(source + row[:, None] * PITCH + columns[None, :], mask=inside, other=other).to(tl.float32)


@triton.jit
def write_rows(target, row, end, columns, values, PITCH: tl.constexpr):
    """Whole rows, including the entries between the channels and the pitch."""
    inside = (row < end)[:, None] & (columns < PITCH)[None, :]
    tl.store(target + row[:, None] * PITCH + columns[None, :], values.to(target.dtype.element_ty), mask=inside)


@triton.jit
def softmax_rows(
    psi, rowptr, size, filled, out, stride, out_stride, PITCH: tl.constexpr, OUT_PITCH: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """a of one receiver in one layer; the maximum and the sum are found in one sweep over its rows."""
    node, layer, begin, end = owned_rows(rowptr, filled)
    columns = tl.arange(0, BLOCK_D)
    psi, out = psi + layer * stride, out + layer * out_stride
    # exp(-∞) = 0 fills the entries between the channels and the pitch: the node pass multiplies whole rows.
    highest = tl.where(columns < D, -float("inf"), 0.0)
    total = tl.zeros([BLOCK_D], tl.float32)
    for start in range(begin, end, ROWS):
        row = start + tl.arange(0, ROWS)
        values = read_rows(psi, row, end, columns, -float("inf"), PITCH, D)
        higher = tl.maximum(highest, tl.max(values, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(values - higher[None, :]), axis=0)
        highest = higher
    scale = tl.load(size + node) / tl.maximum(total, 1e-30)
    for start in range(begin, end, ROWS):
        row = start + tl.arange(0, ROWS)
        values = read_rows(psi, row, end, columns, -float("inf"), PITCH, D)
        write_rows(out, row, end, columns, tl.exp(values - highest[None, :]) * scale[None, :], OUT_PITCH)


@triton.jit
def softmax_gradient(
    g, a, rowptr, size, filled, pulled, stride, out_stride, PITCH: tl.constexpr, OUT_PITCH: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂ψ of one receiver in one layer."""
    node, layer, begin, end = owned_rows(rowptr, filled)
    columns = tl.arange(0, BLOCK_D)
    g, a, pulled = g + layer * stride, a + layer * out_stride, pulled + layer * out_stride
    total = tl.zeros([BLOCK_D], tl.float32)
    for start in range(begin, end, ROWS):
        row = start + tl.arange(0, ROWS)
        share = read_rows(a, row, end, columns, 0.0, OUT_PITCH, D)
        pull = read_rows(g, row, end, columns, 0.0, PITCH, D)
        total += tl.sum(share * pull, axis=0)
    total = total / tl.maximum(tl.load(size + node), 1.0)
    for start in range(begin, end, ROWS):
        row = start + tl.arange(0, ROWS)
        share = read_rows(a, row, end, columns, 0.0, OUT_PITCH, D)
        pull = read_rows(g, row, end, columns, 0.0, PITCH, D)
        write_rows(pulled, row, end, columns, share * (pull - total[None, :]), OUT_PITCH)
