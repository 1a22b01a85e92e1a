"""The node pass forward, launch by launch: two or three per block.

The Triton kernels are in `forward_kernels`, and in `aggregate` for nodes with many senders.

Legend: L blocks, N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.aggregate import aggregate, project
from ckgconv.backends.cuda.node_pass.forward_kernels import forward_convolution, forward_ffn
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.node_pass.options import (
    NODES,
    Direction,
    convolution_options,
    ffn_options,
    hidden_tile,
    parts_of,
)
from ckgconv.ops.launch import launch_options, power_of_two, programs, tile_width

MANY = 64  # mean number of senders above which a separate launch sums over them
FEW = 4  # nodes of a tile of that launch


class Forward(Direction):
    """One forward pass."""

    def run(self, moments: Tensor | None) -> tuple[Tensor, Tensor]:
        """x', and y, t, v of each block [L, 3, N, D].

        The moments of the batch are written to `moments` [L, 2, 3, D]; None evaluates with running statistics.
        """
        self.moments, self.splits = moments, parts_of(self.nodes)
        # Parts of the moments of t and of v.
        self.parts = torch.empty(2, 3, self.splits, self.width, dtype=torch.float32, device=self.x.device)
        self.sizes = {"D": self.width, "splits": self.splits, "BLOCK_N": NODES, "BLOCK_D": tile_width(self.width)}
        self.norms = {"epsilon": self.settings.epsilon, "PARTS": power_of_two(self.splits)}
        self.state = {"TRACK": moments is not None, "PRECISION": self.settings.precision}
        convolve = self._separately if self.psi.shape[1] > MANY * self.nodes else self._at_once
        kept = torch.empty(len(self.blocks), 3, self.nodes, self.width, dtype=torch.float32, device=self.x.device)
        source = self.x
        for number in range(len(self.blocks)):
            y, t, v = kept[number]
            convolve(number, source, y, t)
            self._feed_forward(number, t, v)
            source = v
        return self._last_norm(source), kept

    def _norm(self, index: int) -> list[Any]:
        """Moments and running statistics of a norm; block l has norms 2l and 2l + 1."""
        moments = None if self.moments is None else self.moments[index // 2, index % 2]
        return [moments, *self.settings.running[index], self.settings.momentum]

    def _before(self, number: int, source: Tensor) -> tuple[Any, ...]:
        """What a block reads: the input of the norm that ends the previous block, and that norm."""
        previous = self.blocks[max(number - 1, 0)]
        norm = self._norm(max(2 * number - 1, 0))
        return (source, self.parts[1], *norm, previous.scale_out, previous.shift_out)

    def _scaled(self, number: int) -> tuple[Tensor, ...]:
        each = self.blocks[number]
        return (self.lists.degree, each.theta1, each.theta2, each.weight, each.bias)

    def _at_once(self, number: int, source: Tensor, y: Tensor, t: Tensor) -> None:
        """Convolution, degree scaler, projection and residual sum in one launch."""
        lists = self.lists
        forward_convolution[(self.splits,)](
            *self._before(number, source), self.psi[number], lists.rowptr, lists.sender, lists.support_size,
            *self._scaled(number), y, t, self.parts[0], self.filled, self.dropout.seed,
            **self.dropout.arguments(2 * number), **self.sizes, **self.norms, **self.state,
            **convolution_options(self.psi), **self.early, NORM=number > 0, GIVEN=self.moments is None,
        )  # fmt: skip

    def _separately(self, number: int, source: Tensor, y: Tensor, t: Tensor) -> None:
        """The same in two launches: many senders need smaller tiles of nodes than the product does."""
        lists, normal = self.lists, torch.empty_like(self.x)
        tile = {"BLOCK_N": FEW, "TILE": NODES, "CHUNK": 16, "PITCH": self.psi.stride(1)}
        aggregate[(min(-(-self.nodes // FEW), programs(self.x, 8)),)](
            *self._before(number, source), self.psi[number], lists.rowptr, lists.sender, lists.support_size, normal,
            y, self.filled, **self.norms, **{**self.sizes, **tile, **launch_options(self.width), "maxnreg": 128},
            NORM=number > 0, GIVEN=self.moments is None,
        )  # fmt: skip
        project[(self.splits,)](
            normal, y, *self._scaled(number), t, self.parts[0], self.filled, self.dropout.seed,
            **self.dropout.arguments(2 * number), **self.sizes, **self.state, **self.plain,
        )  # fmt: skip

    def _feed_forward(self, number: int, t: Tensor, v: Tensor) -> None:
        each = self.blocks[number]
        forward_ffn[(self.splits,)](
            t, self.parts[0], *self._norm(2 * number), each.scale, each.shift, each.weight_in, each.bias_in,
            each.weight_out, each.bias_out, v, self.parts[1], self.filled, self.dropout.seed,
            **self.dropout.arguments(2 * number + 1), **self.sizes, **self.norms, **self.state, **ffn_options(),
            **self.early, GIVEN=self.moments is None, H=self.hidden, BLOCK_H=hidden_tile(self.width, self.hidden),
        )  # fmt: skip

    def _last_norm(self, v: Tensor) -> Tensor:
        """x' [N, D] of the last block."""
        out = torch.empty_like(self.x)
        apply_norm[(-(-self.nodes // NODES),)](
            *self._before(len(self.blocks), v), out, None, self.filled, N=self.nodes, GIVEN=self.moments is None,
            WEIGHTED=False, TILE=NODES, **self.sizes, **self.norms, **self.plain,
        )  # fmt: skip
        return out
