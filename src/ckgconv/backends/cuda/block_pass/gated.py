"""All blocks of GatedGCN with feed-forward networks, nine launches per block; `nn.message_passing` specifies them.

    ê_ij = C e_ij + D x_j + E x_i        e ← e + drop(ReLU(BN(ê)))
    m = A x + Σ_j σ(ê_ij) B x_j / (Σ_j σ(ê_ij) + ε)
    t = x + drop(ReLU(BN(m)))            and the feed-forward network of `gine`

Legend: L blocks, N nodes, E edges, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass import gine
from ckgconv.backends.cuda.block_pass.function import Directions, Operands, run_blocks
from ckgconv.backends.cuda.block_pass.gated_backward import (
    backward_join,
    backward_project,
    backward_receivers,
    backward_senders,
)
from ckgconv.backends.cuda.block_pass.gated_forward import (
    forward_gates,
    forward_join,
    forward_project,
    keep_edge_moments,
)
from ckgconv.backends.cuda.block_pass.gradients import Factors, Matrices
from ckgconv.backends.cuda.block_pass.options import CHUNK, Settings
from ckgconv.nn.gated_gcn import EPSILON
from ckgconv.ops.launch import power_of_two
from ckgconv.ops.reductions import summed

GATED = 8  # nodes of a tile where edges are read: twice as many would not fit into registers
EDGES = 32  # edges of a tile of their product


class Block(NamedTuple):
    """Parameters of one block."""

    weight_a: Tensor  # [D, D] of the node itself
    bias_a: Tensor  # [D]
    weight_b: Tensor  # of the message
    bias_b: Tensor
    weight_c: Tensor  # of the edge
    bias_c: Tensor
    weight_d: Tensor  # of the sender
    bias_d: Tensor
    weight_e: Tensor  # of the receiver
    bias_e: Tensor
    scale_edge: Tensor  # [D] of the norm of ê
    shift_edge: Tensor
    scale_m: Tensor  # [D] of the norm of m
    shift_m: Tensor
    scale: Tensor  # [D] of the norm of t; from here on as in `gine.Block`
    shift: Tensor
    weight_in: Tensor
    bias_in: Tensor
    weight_out: Tensor
    bias_out: Tensor
    scale_out: Tensor
    shift_out: Tensor


class KeptGates(NamedTuple):
    """What the backward pass reads next to `gine.Kept`, whose first three are x, y and m here."""

    nodes: Tensor  # [2, L, N, D] Σσ + ε, B x + b
    edges: Tensor  # [2, L, E, D] e, ê
    moments: Tensor  # [L, 3, D] of ê


def gated_blocks(x: Tensor, edges: Tensor, operands: Operands, blocks: Sequence[Block], settings: Settings) -> Tensor:
    """x [N, D], edges [E, D] → x' of the last block [N, D], zero in padding."""
    # Padding edges belong to nodes of padding, so that all others come first.
    edge_filled = operands.lists.pointer.index_select(0, operands.filled)
    operands = operands._replace(more=(edge_filled,))
    return run_blocks(Directions(Forward, Backward), x, edges, settings, operands, blocks)


class Gating(gine.Direction):
    """What both directions share."""

    fields: ClassVar[Any] = Block
    more: ClassVar[int] = 1  # the number of edges that are filled
    norms: ClassVar[int] = 3  # of t, v and m; that of ê is counted apart
    draws: ClassVar[int] = 4  # of the edges, of the layer, of hidden values, of the output

    def __init__(self, x: Tensor, edges: Tensor, settings: Settings, operands: Sequence[Tensor]) -> None:
        super().__init__(x, edges, settings, operands)
        (self.edge_filled,), sizes = self.operands, self.sizes
        self.gate_splits, self.edge_splits = -(-sizes.nodes // GATED), -(-len(self.edges) // EDGES)
        self.by_edges = {**sizes.tile, "BLOCK_N": GATED, "CHUNK": CHUNK}
        self.both = {**sizes.tile, "BLOCK_E": EDGES, "splits": sizes.splits, "PRECISION": self.settings.precision}


class Forward(Gating, gine.Forward):
    """One forward pass."""

    def run(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        sizes, layers = self.sizes, len(self.blocks)
        nodes, edges = (sizes.empty(2, layers, rows, sizes.width) for rows in (sizes.nodes, len(self.edges)))
        self.gated = KeptGates(nodes, edges, sizes.empty(layers, 3, sizes.width))
        self.gate_parts = sizes.empty(2, 3, self.gate_splits, sizes.width)  # of the moments of m and of ê
        self.products = sizes.empty(3, sizes.nodes, sizes.width)  # A x, D x, E x
        self.edge_product = torch.empty_like(self.edges)
        out, kept = super().run()
        keep_edge_moments[(1,)](
            *self._edge_norm(layers - 1), self.settings.momentum, self.gate_splits, D=sizes.width,
            PARTS=power_of_two(self.gate_splits), BLOCK_D=sizes.tile["BLOCK_D"],
        )  # fmt: skip
        return out, (*kept, *self.gated)

    def _edge_norm(self, number: int) -> tuple[Tensor, ...]:
        """Parts, moments and running statistics of the norm of ê."""
        return (self.gate_parts[1], self.gated.moments[number], *self.settings.running[number][3])

    def _layer(self, number: int, source: Tensor, attention: Sequence[Any] = ()) -> None:
        self._project(number, source)
        each, sizes, lists = self.blocks[number], self.sizes, self.lists
        (x, y, m, t, *_), (shares, at_b) = self.kept.narrow[:, number], self.gated.nodes[:, number]
        at_a, at_d, at_e = self.products
        m_parts, state_parts = self.gate_parts
        # ε of the norms is not read here.
        options = {name: value for name, value in self.by_edges.items() if name != "epsilon"}
        forward_gates[(self.gate_splits,)](
            at_a, at_b, self.edge_product, at_d, at_e, lists.pointer, lists.sender, self.gated.edges[1, number],
            state_parts, y, shares, m, m_parts, self.filled, EPSILON, splits=self.gate_splits, **options,
        )  # fmt: skip
        running = self.settings.running[number][2]
        forward_join[(sizes.splits,)](
            m, m_parts, self.kept.moments[number, 2], *running, self.settings.momentum, each.scale_m, each.shift_m,
            self.gate_splits, x, t, self.parts[0], **self.masks(number, 1), **sizes.tile, splits=sizes.splits,
            M_ROWS=GATED, M_PARTS=power_of_two(self.gate_splits),
        )  # fmt: skip

    def _project(self, number: int, source: Tensor) -> None:
        each, sizes, before = self.blocks[number], self.sizes, max(number - 1, 0)
        edges, state = self.gated.edges
        previous, (at_a, at_d, at_e) = self.blocks[before], self.products
        forward_project[(sizes.splits + self.edge_splits,)](
            source, *self._before(number), self.settings.momentum, each.weight_a, each.bias_a, each.weight_b,
            each.bias_b, each.weight_d, each.bias_d, each.weight_e, each.bias_e, self.kept.narrow[0, number], at_a,
            self.gated.nodes[1, number], at_d, at_e, edges[before] if number else self.edges, state[before],
            *self._edge_norm(before), previous.scale_edge, previous.shift_edge, self.gate_splits, each.weight_c,
            each.bias_c, edges[number], self.edge_product, edge_filled=self.edge_filled, **self.masks(before, 0),
            **self.both, NORM=number > 0, PARTS=sizes.parts, STATE_PARTS=power_of_two(self.gate_splits),
        )  # fmt: skip


class Backward(Gating, gine.Backward):
    """One backward pass."""

    def run(self, kept: Sequence[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        count, sizes, layers = len(gine.Kept._fields), self.sizes, len(self.blocks)
        self.gated = KeptGates(*kept[count:])
        self.edge_sums = sizes.empty(self.edge_splits, layers, 2, sizes.width)
        self.wide = sizes.empty(layers, sizes.nodes, 4 * sizes.width)  # gradients of A x, B x, D x and E x
        self.at_state = torch.empty_like(self.gated.edges[0])  # ∂ê
        self.gn, self.behind = sizes.empty(sizes.nodes, sizes.width), torch.empty_like(self.edges)
        return super().run(kept[:count], gradient)

    def _layer(self, number: int, attention: Sequence[Any] = ()) -> None:
        each, sizes, moments = self.blocks[number], self.sizes, self.kept.moments[number]
        _, _, m, t, *_ = self.kept.narrow[:, number]
        backward_join[(sizes.splits,)](
            self.gu, t, moments[0], each.scale, self.sums[0, number, 0], self.sums.stride(0), sizes.splits, m,
            moments[2], each.scale_m, each.shift_m, self.sums[0, number, 4], self.residual, self.gn,
            **self.masks(number, 1), **sizes.tile, PARTS=sizes.parts,
        )  # fmt: skip

    def _messages(self, number: int, attention: Sequence[Any] = ()) -> None:
        each, sizes, lists = self.blocks[number], self.sizes, self.lists
        (_, y, m, *_), (shares, at_b) = self.kept.narrow[:, number], self.gated.nodes[:, number]
        state, gs, wide = self.gated.edges[1, number], self.at_state[number], self.wide[number]
        backward_receivers[(self.gate_splits,)](
            self.gn, m, self.kept.moments[number, 2], each.scale_m, self.sums[0, number, 4], self.sums.stride(0),
            sizes.splits, at_b, y, shares, state, lists.pointer, lists.sender, self.behind, self.gated.moments[number],
            each.scale_edge, self.edge_sums[0, number], self.edge_sums.stride(0), self.edge_splits, wide, gs,
            self.filled, BACK=number + 1 < len(self.blocks), PARTS=sizes.parts,
            STATE_PARTS=power_of_two(self.edge_splits), **self.by_edges,
        )  # fmt: skip
        options = {name: value for name, value in self.by_edges.items() if name != "epsilon"}
        backward_senders[(self.gate_splits,)](
            state, shares, gs, wide, lists.sender_ptr, lists.sender_rows, lists.sender_receiver, self.filled, **options
        )
        self._project(number)

    def _project(self, number: int) -> None:
        each, sizes, before = self.blocks[number], self.sizes, max(number - 1, 0)
        previous = self.blocks[before]
        backward_project[(sizes.splits + self.edge_splits,)](
            self.wide[number], each.weight_a, each.weight_b, each.weight_d, each.weight_e, self.residual,
            self.kept.narrow[5, before], self.kept.moments[before, 1], self.sums[0, before, 2], self.sums.stride(0),
            self.gx, self.at_state[number], each.weight_c, self.ge, self.gated.edges[1, before],
            self.gated.moments[before], previous.scale_edge, previous.shift_edge, self.edge_sums[0, before],
            self.edge_sums.stride(0), self.behind, edge_filled=self.edge_filled, **self.masks(before, 0), **self.both,
            N=sizes.nodes, NORM=number > 0, BACK=number + 1 < len(self.blocks),
        )  # fmt: skip

    def _factors(self) -> list[Factors]:
        x, *_, u, _ = self.kept.narrow
        return [
            Factors(self.wide, x, self.filled),
            Factors(self.hidden, u, self.filled),
            Factors(self.narrow[2], self.kept.hidden, self.filled),
            Factors(self.at_state, self.gated.edges[0], self.edge_filled),
        ]

    def _fields(self) -> list[Tensor | None]:
        # Nothing reads the edges that the last block leaves, so their sums are never written.
        self.norms_of_edges = summed(self.edge_sums[:, :-1])
        return super()._fields()

    def _of_block(self, number: int, matrices: Matrices, sums: Tensor) -> list[Tensor | None]:
        (weight, bias), *feed_forward, (weight_c, bias_c) = matrices
        weights, biases = weight[number].chunk(4), bias[number].chunk(4)
        a, b, d, e = zip(weights, biases, strict=True)
        last = number + 1 == len(self.blocks)
        shift_edge, scale_edge = (None, None) if last else self.norms_of_edges[number].unbind(0)
        shift, scale, shift_out, scale_out, shift_m, scale_m = sums.unbind(0)
        of_edges = [weight_c[number], bias_c[number], *d, *e, scale_edge, shift_edge]
        layer = [*a, *b, *of_edges, scale_m, shift_m, scale, shift]
        inner = [gradient[number] for pair in feed_forward for gradient in pair]
        return [*layer, *inner, scale_out, shift_out]
