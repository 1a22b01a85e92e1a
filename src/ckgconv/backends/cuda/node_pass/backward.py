"""The node pass backward, launch by launch: three per block; the Triton kernels are in `backward_kernels`.

Legend: L blocks, N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.backward_kernels import (
    backward_convolution,
    backward_ffn,
    backward_projection,
    norm_sums,
)
from ckgconv.backends.cuda.node_pass.gradients import PIECE, Factors, field_gradients
from ckgconv.backends.cuda.node_pass.options import (
    NODES,
    Direction,
    convolution_options,
    hidden_tile,
    parts_of,
)
from ckgconv.ops.launch import pitch, power_of_two, tile_width

CONVOLVED = 8  # nodes of a tile of the convolution, which has no matrix product here; with 16, registers spill
SUMS = 4  # Σg, Σ g t̂ of the first norm, ∂θ₁, ∂θ₂; another launch sums those of the second norm


class Backward(Direction):
    """One backward pass."""

    def run(self, moments: Tensor, kept: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """∂x, ∂ψ and the gradients of the fields of every block; `moments` and `kept` as `Forward` returned them."""
        self.moments, self.kept = moments, kept
        self.rows = -(-self.nodes // PIECE) * PIECE
        self.splits, self.splits_out = parts_of(self.rows), parts_of(self.nodes, CONVOLVED)
        self._allocate()
        self.common: dict[str, Any] = {
            "epsilon": self.settings.epsilon,
            "D": self.width,
            "BLOCK_D": tile_width(self.width),
        }
        self.by_rows = {"splits": self.splits, "BLOCK_N": NODES, "PITCH": self.factors.narrow.shape[3]}
        self.by_tiles = {"splits": self.splits_out, "BLOCK_N": CONVOLVED}
        norm_sums[(self.splits_out,)](
            gradient, kept[-1, 2], moments[-1, 1], self.sums_out[0, -1], self.sums_out.stride(0), self.filled,
            **self.common, **self.by_tiles, **self.plain,
        )  # fmt: skip
        incoming = gradient
        for number in range(len(self.blocks) - 1, -1, -1):
            self._feed_forward(number, incoming)
            self._projection(number)
            self._convolution(number)
            incoming = self.pull
        gradients = field_gradients(self.sums, self.sums_out, self.factors, self.width, self.settings)
        return self.pull, self.gradient_psi[..., : self.width], gradients

    def _allocate(self) -> None:
        device, width, rows, layers = self.x.device, self.width, self.rows, len(self.blocks)
        self.gradient_psi = torch.empty(
            *self.psi.shape[:2], self.psi.stride(1), dtype=self.psi.dtype, device=self.psi.device
        )
        self.sums = torch.empty(self.splits, layers, SUMS, width, dtype=torch.float32, device=device)
        self.sums_out = torch.empty(self.splits_out, layers, 2, width, dtype=torch.float32, device=device)
        self.factors = Factors(
            narrow=torch.empty(4, layers, rows, pitch(width), dtype=torch.float32, device=device),
            wide=torch.empty(2, layers, rows, self.hidden, dtype=torch.float32, device=device),
        )
        self.pull, self.residual, self.gradient_y = torch.empty(
            3, self.nodes, width, dtype=torch.float32, device=device
        )

    def _feed_forward(self, number: int, incoming: Tensor) -> None:
        each, (_, t, v), moments = self.blocks[number], self.kept[number], self.moments[number]
        out_kept, u_kept = self.factors.narrow[:2]
        hidden_kept, gradient_hidden = self.factors.wide
        backward_ffn[(self.splits,)](
            incoming, v, moments[1], each.scale_out, self.sums_out[0, number], self.sums_out.stride(0),
            self.splits_out, t, moments[0], each.scale, each.shift, self.sums[0, number, 0], self.sums.stride(0),
            each.weight_in, each.bias_in, each.weight_out, self.residual, u_kept[number], hidden_kept[number],
            gradient_hidden[number], out_kept[number], self.filled, self.dropout.seed,
            **self.dropout.arguments(2 * number + 1), **self._by_rows(), H=self.hidden,
            BLOCK_H=hidden_tile(self.width, self.hidden), V_PARTS=power_of_two(self.splits_out),
        )  # fmt: skip

    def _projection(self, number: int) -> None:
        each, (y, t, _), lists = self.blocks[number], self.kept[number], self.lists
        _, _, projected_kept, scaled_kept = self.factors.narrow
        backward_projection[(self.splits,)](
            self.residual, t, self.moments[number, 0], each.scale, self.sums[0, number, 0], self.sums.stride(0), y,
            lists.support_size, lists.degree, each.theta1, each.theta2, each.weight, self.residual,
            projected_kept[number], scaled_kept[number], self.gradient_y, self.sums[0, number, 2], self.filled,
            self.dropout.seed, **self.dropout.arguments(2 * number), **self._by_rows(),
            PARTS=power_of_two(self.splits),
        )  # fmt: skip

    def _by_rows(self) -> dict[str, Any]:
        """Sizes and options of the two launches that keep the factors of gradients of matrices."""
        sizes = {"N": self.rows, "PRECISION": self.settings.precision}
        return {**self.common, **self.by_rows, **self.plain, **self.early, **sizes}

    def _convolution(self, number: int) -> None:
        lists, before = self.lists, max(number - 1, 0)
        backward_convolution[(self.splits_out,)](
            self.gradient_y, self.residual, self.psi[number], self.gradient_psi[number], lists.sender_ptr,
            lists.sender_rows, lists.sender_receiver, self.kept[before, 2] if number else self.x,
            self.moments[before, 1], self.blocks[before].scale_out, self.blocks[before].shift_out,
            self.sums_out[0, before], self.sums_out.stride(0), self.pull, self.filled, N=self.nodes, **self.common,
            **self.by_tiles, **convolution_options(self.psi), **self.early, NORM=number > 0,
        )  # fmt: skip
