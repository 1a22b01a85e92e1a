"""Scaled depthwise convolution over lists in Triton, also in its sparse global form; the equations are in `naive`.

    y_i = 1/n_i [ Σ_{j ∈ S_i} x_j ⊙ ψ_ij + b_i ⊙ r_i ]          r_i = Σ_{j ∈ graph} x_j - Σ_{j ∈ S_i} x_j

    p_i = g_i/n_i        ∂ψ_ij = x_j ⊙ p_i        ∂b_i = p_i ⊙ r_i
    ∂x_j = Σ_{i: j ∈ S_i} (p_i ⊙ ψ_ij - p_i ⊙ b_i) + Σ_{i ∈ graph} p_i ⊙ b_i

Forward and backward are the same sum, over the list of a receiver and over that of a sender, in a fixed order. Higher
derivatives are those of `naive`.

Legend: N nodes, P stored pairs, D channels, G graphs (of zero rows).
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

from functools import partial
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.convolution import naive
from ckgconv.ops.convolution.naive import Graphs, SenderLists
from ckgconv.ops.derivatives import specification_gradients, will_be_differentiated
from ckgconv.ops.launch import launch_options, power_of_two
from ckgconv.ops.pool.triton import sums

NODES, PAIRS, ROWS = 4, 16, 64  # of a tile: nodes and pairs of each, or rows of ψ


class Lists(NamedTuple):
    """The pairs in both orders."""

    rowptr: Tensor  # [N + 1]
    receiver: Tensor  # [P]
    sender: Tensor  # [P]
    by_sender: SenderLists


def scaled_convolution(x: Tensor, psi: Tensor, support_size: Tensor, lists: Lists) -> Tensor:
    """y [N, D] float32 from x [N, D], ψ [P, D]; support_size [N]. Empty supports give 0."""
    return Convolution.apply(x.float().contiguous(), _rows(psi), None, support_size.float(), lists, None)


def sparse_global_convolution(
    x: Tensor, psi: Tensor, background: Tensor, support_size: Tensor, lists: Lists, graphs: Graphs
) -> Tensor:
    """y [N, D] float32 over whole graphs, with ψ⁰ = background [N, D] for the pairs not stored."""
    return Convolution.apply(
        x.float().contiguous(), _rows(psi), background.float(), support_size.float(), lists, graphs
    )


class Convolution(torch.autograd.Function):
    """x, ψ, ψ⁰ or None, support sizes, lists, graphs where there is ψ⁰ → y."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        psi: Tensor,
        background: Tensor | None,
        support_size: Tensor,
        lists: Lists,
        graphs: Graphs | None,
    ) -> Tensor:
        size = support_size.clamp(min=1).unsqueeze(-1)
        summed, taken = _list_sums(x, None if background is None else x, psi, lists.rowptr, lists.sender, None)
        rest = None
        if background is not None and taken is not None and graphs is not None:
            rest = sums(x, graphs.graph_ptr).index_select(0, graphs.node_graph) - taken
            summed = summed + background * rest
        ctx.save_for_backward(x, psi, background, rest, size)
        ctx.lists, ctx.graphs = lists, graphs
        return summed / size

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, psi, background, rest, size = ctx.saved_tensors
        lists: Lists = ctx.lists
        if will_be_differentiated(gradient):
            return _differentiable_backward(ctx, gradient, x, psi, background, size)
        pulled = (gradient.float() / size).contiguous()
        shared = None if background is None else pulled * background
        pointer, rows, receiver = lists.by_sender
        gradient_x, taken = _list_sums(pulled, shared, psi, pointer, receiver, rows)
        if taken is not None and shared is not None:
            graphs: Graphs = ctx.graphs
            gradient_x = gradient_x - taken + sums(shared, graphs.graph_ptr).index_select(0, graphs.node_graph)
        gradient_background = None if rest is None else pulled * rest
        return gradient_x, _products(x, pulled, psi, lists), gradient_background, None, None, None


def _differentiable_backward(
    ctx: Any, gradient: Tensor, x: Tensor, psi: Tensor, background: Tensor | None, size: Tensor
) -> tuple[Tensor | None, ...]:
    """The same gradients, of `naive`."""
    lists: Lists = ctx.lists
    indices = {"receiver": lists.receiver, "sender": lists.sender, "support_size": size.squeeze(-1)}
    if background is None:
        formula, inputs = partial(naive.scaled_convolution, **indices), [x, psi]
    else:
        formula = partial(naive.sparse_global_convolution, **indices, graph=ctx.graphs.node_graph)
        inputs = [x, psi, background]
    found = specification_gradients(formula, inputs, ctx.needs_input_grad[: len(inputs)], gradient)
    return *found, *[None] * (len(ctx.needs_input_grad) - len(inputs))


def _rows(psi: Tensor) -> Tensor:
    """ψ with contiguous channels; rows may have a pitch."""
    return psi if psi.stride(1) == 1 else psi.contiguous()


def _list_sums(
    v: Tensor, w: Tensor | None, psi: Tensor, pointer: Tensor, other: Tensor, row: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Σ v ⊙ ψ and, where w is given, Σ w over the list of each node, both [N, D]."""
    nodes, width = v.shape
    summed = torch.empty_like(v)
    taken = None if w is None else torch.empty_like(v)
    if nodes:
        list_sums[(triton.cdiv(nodes, NODES),)](
            v, v if w is None else w, psi, pointer.contiguous(), other.contiguous(),
            other if row is None else row.contiguous(), summed, summed if taken is None else taken, nodes, D=width,
            PITCH=psi.stride(0), TWO=w is not None, LISTED=row is not None, NODES=NODES, PAIRS=PAIRS,
            BLOCK_D=power_of_two(width), **launch_options(width),
        )  # fmt: skip
    return summed, taken


def _products(x: Tensor, pulled: Tensor, psi: Tensor, lists: Lists) -> Tensor:
    """∂ψ [P, D]."""
    rows, width = psi.shape
    gradient = torch.empty(rows, width, dtype=psi.dtype, device=psi.device)
    if rows:
        products[(triton.cdiv(rows, ROWS),)](
            x, pulled, lists.sender.contiguous(), lists.receiver.contiguous(), gradient, rows, D=width, ROWS=ROWS,
            BLOCK_D=power_of_two(width), **launch_options(width),
        )  # fmt: skip
    return gradient


@triton.jit
def list_sums(
    v, w, psi, pointer, other, row, summed, taken, nodes, D: tl.constexpr, PITCH: tl.constexpr, TWO: tl.constexpr,
    LISTED: tl.constexpr, NODES: tl.constexpr, PAIRS: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """A program owns a few nodes and loops over the longest of their lists."""
    node = tl.program_id(0) * NODES + tl.arange(0, NODES)
    real = node < nodes
    begin = tl.load(pointer + node, mask=real, other=0).to(tl.int32)
    length = tl.load(pointer + node + 1, mask=real, other=0).to(tl.int32) - begin
    columns = tl.arange(0, BLOCK_D)
    total = tl.zeros([NODES, BLOCK_D], tl.float32)
    plain = tl.zeros([NODES, BLOCK_D], tl.float32)
    for start in range(0, tl.max(length, axis=0), PAIRS):
        place = start + tl.arange(0, PAIRS)
        stored = place[None, :] < length[:, None]
        entry = begin[:, None] + place[None, :]
        source = tl.load(other + entry, mask=stored, other=0).to(tl.int32)
        pair = entry
        if LISTED:
            pair = tl.load(row + entry, mask=stored, other=0).to(tl.int32)
        inside = stored[:, :, None] & (columns < D)[None, None, :]
        kernel = tl.load(psi + pair[:, :, None] * PITCH + columns[None, None, :], mask=inside, other=0.0)
        values = tl.load(v + source[:, :, None] * D + columns[None, None, :], mask=inside, other=0.0)
        total += tl.sum(values * kernel.to(tl.float32), axis=1)
        if TWO:
            plain += tl.sum(
                tl.load(w + source[:, :, None] * D + columns[None, None, :], mask=inside, other=0.0), axis=1
            )
    target = node[:, None] * D + columns[None, :]
    inside = real[:, None] & (columns < D)[None, :]
    tl.store(summed + target, total, mask=inside)
    if TWO:
        tl.store(taken + target, plain, mask=inside)


@triton.jit
def products(x, pulled, sender, receiver, gradient, rows, D: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr):
    """∂ψ of a tile of rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    real = row < rows
    columns = tl.arange(0, BLOCK_D)
    inside = real[:, None] & (columns < D)[None, :]
    j = tl.load(sender + row, mask=real, other=0).to(tl.int32)
    i = tl.load(receiver + row, mask=real, other=0).to(tl.int32)
    values = tl.load(x + j[:, None] * D + columns[None, :], mask=inside, other=0.0)
    pull = tl.load(pulled + i[:, None] * D + columns[None, :], mask=inside, other=0.0)
    target = gradient + row[:, None] * D + columns[None, :]
    tl.store(target, (values * pull).to(gradient.dtype.element_ty), mask=inside)
