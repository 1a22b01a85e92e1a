"""Triton kernels of messages along edges: a program owns one receiver, or one sender, and the edges that it has.

    rectified   y_i = Σ_j ReLU(h_j + e_ij)
    gated       s_ij = c_ij + d_j + r_i        y_i = Σ_j σ(s_ij) b_j / (Σ_j σ(s_ij) + ε)

    ∂s_ij = σ' ⊙ g_i ⊙ (b_j - y_i) / (Σσ + ε) + what came back along the edge       ∂b_j = Σ_i σ(s_ij) g_i / (Σσ + ε)

Legend: N nodes, E edges, D width.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl


@triton.jit
def own_edges(pointer, filled, node):
    """First and last place of the edges of a node; none of a node of padding, which owns all padding edges."""
    begin, end = tl.load(pointer + node), tl.load(pointer + node + 1)
    return begin, tl.where(node < tl.load(filled), end, begin)


@triton.jit
def read_edges(order, start, end, other_ends, BLOCK_R: tl.constexpr):
    """Edges from place `start` of an order on, whether they exist, and the node at their other end."""
    place = start + tl.arange(0, BLOCK_R)
    real = place < end
    edge = tl.load(order + place, mask=real, other=0)
    return edge, real, tl.load(other_ends + edge, mask=real, other=0)


@triton.jit
def read(x, row, real, columns, D: tl.constexpr):
    """[R, D] float32."""
    inside = real[:, None] & (columns < D)[None, :]
    return tl.load(x + row[:, None] * D + columns[None, :], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def write(x, row, real, columns, values, D: tl.constexpr):
    """[R, D]."""
    inside = real[:, None] & (columns < D)[None, :]
    tl.store(x + row[:, None] * D + columns[None, :], values.to(x.dtype.element_ty), mask=inside)


@triton.jit
def rectified_sum(
    h, e, pointer, order, filled, sender, y, D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr
):
    """y of one receiver."""
    node = tl.program_id(0)
    begin, end = own_edges(pointer, filled, node)
    columns = tl.arange(0, BLOCK_D)
    total = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(begin, end, BLOCK_R):
        edge, real, other = read_edges(order, start, end, sender, BLOCK_R)
        total += tl.maximum(read(h, other, real, columns, D) + read(e, edge, real, columns, D), 0.0)
    tl.store(y + node * D + columns, tl.sum(total, axis=0), mask=columns < D)


@triton.jit
def rectified_backward(
    h, e, g, pointer, order, filled, receiver, gh, ge, D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr
):
    """∂h of one sender and ∂e of its edges."""
    node = tl.program_id(0)
    begin, end = own_edges(pointer, filled, node)
    columns = tl.arange(0, BLOCK_D)
    own = tl.load(h + node * D + columns, mask=columns < D, other=0.0).to(tl.float32)
    total = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(begin, end, BLOCK_R):
        edge, real, other = read_edges(order, start, end, receiver, BLOCK_R)
        passes = own[None, :] + read(e, edge, real, columns, D) > 0
        pulled = tl.where(passes, read(g, other, real, columns, D), 0.0)
        write(ge, edge, real, columns, pulled, D)
        total += pulled
    tl.store(gh + node * D + columns, tl.sum(total, axis=0), mask=columns < D)


@triton.jit
def gated_sum(
    c, d, r, b, pointer, order, filled, sender, state, y, total, epsilon, D: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """y and Σσ + ε of one receiver, and s of its edges."""
    node = tl.program_id(0)
    begin, end = own_edges(pointer, filled, node)
    columns = tl.arange(0, BLOCK_D)
    own = tl.load(r + node * D + columns, mask=columns < D, other=0.0).to(tl.float32)
    summed = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    gates = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(begin, end, BLOCK_R):
        edge, real, other = read_edges(order, start, end, sender, BLOCK_R)
        values = read(c, edge, real, columns, D) + read(d, other, real, columns, D) + own[None, :]
        write(state, edge, real, columns, values, D)
        gate = tl.where(real[:, None], tl.sigmoid(values), 0.0)
        summed += gate * read(b, other, real, columns, D)
        gates += gate
    share = tl.sum(gates, axis=0) + epsilon
    tl.store(total + node * D + columns, share, mask=columns < D)
    tl.store(y + node * D + columns, tl.sum(summed, axis=0) / share, mask=columns < D)


@triton.jit
def gated_receiver_backward(
    state, b, y, total, g, g_state, pointer, order, filled, sender, gs, gr, D: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂s of the edges of one receiver, and ∂r, their sum."""
    node = tl.program_id(0)
    begin, end = own_edges(pointer, filled, node)
    columns = tl.arange(0, BLOCK_D)
    cell, inside = node * D + columns, columns < D
    own = tl.load(y + cell, mask=inside, other=0.0)
    pull = tl.load(g + cell, mask=inside, other=0.0).to(tl.float32) / tl.load(total + cell, mask=inside, other=1.0)
    summed = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(begin, end, BLOCK_R):
        edge, real, other = read_edges(order, start, end, sender, BLOCK_R)
        gate = tl.sigmoid(read(state, edge, real, columns, D))
        back = pull[None, :] * (read(b, other, real, columns, D) - own[None, :]) * gate * (1.0 - gate)
        if g_state is not None:
            back += read(g_state, edge, real, columns, D)
        back = tl.where(real[:, None], back, 0.0)
        write(gs, edge, real, columns, back, D)
        summed += back
    tl.store(gr + cell, tl.sum(summed, axis=0), mask=inside)


@triton.jit
def gated_sender_backward(
    state, total, g, gs, pointer, order, filled, receiver, gd, gb, D: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """∂d and ∂b of one sender."""
    node = tl.program_id(0)
    begin, end = own_edges(pointer, filled, node)
    columns = tl.arange(0, BLOCK_D)
    at_d = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    at_b = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for start in range(begin, end, BLOCK_R):
        edge, real, other = read_edges(order, start, end, receiver, BLOCK_R)
        at_d += read(gs, edge, real, columns, D)
        inside = real[:, None] & (columns < D)[None, :]
        share = tl.load(total + other[:, None] * D + columns[None, :], mask=inside, other=1.0)
        at_b += tl.sigmoid(read(state, edge, real, columns, D)) * read(g, other, real, columns, D) / share
    tl.store(gd + node * D + columns, tl.sum(at_d, axis=0), mask=columns < D)
    tl.store(gb + node * D + columns, tl.sum(at_b, axis=0), mask=columns < D)
