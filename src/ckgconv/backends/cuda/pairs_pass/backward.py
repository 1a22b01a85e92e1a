"""The pairs pass backward, stage by stage; the Triton kernels are in `backward_stage` and `row_kernels`.

Legend: L layers, R rows, K channels in, D channels out, S parts (programs of a layer).
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.backends.cuda.pairs_pass.backward_stage import backward_stage
from ckgconv.backends.cuda.pairs_pass.options import Direction, backward_launch
from ckgconv.backends.cuda.pairs_pass.row_kernels import input_gradient
from ckgconv.ops.launch import pitch, power_of_two, tile_width
from ckgconv.ops.reductions import summed, write_sums

INPUT_ROWS = 64  # of a tile of the input's gradient


class Backward(Direction):
    """One backward pass."""

    choose_launch = staticmethod(backward_launch)

    def run(self, moments: Tensor, outputs: Sequence[Tensor], gradient: Tensor) -> tuple[Tensor, list[Tensor]]:
        """∂x [R, K], and the gradients of the fields of every stage.

        Args:
            moments: [2B + 1, 3, L, K] of the inputs of all stages.
            outputs: [L, R, pitch of D] of every stage but the last.
            gradient: ∂ψ [L, R, pitch of D].
        """
        streams, self.moments, self.outputs = self.settings.streams, moments, outputs
        self._allocate()
        for number in range(self.last, -1, -1):
            self._stage(number, gradient)
        last_stage = streams.point()
        gradient_x = self._input_gradient()
        # The input's gradient is bound by memory: deferred launches, and the stem of the nodes, may run concurrently.
        streams.flush_deferred(since=last_stage)
        # These sums read as much memory as the input's gradient, for which the stem waits: concurrent, they delay it.
        sums = torch.empty_like(self.parts[0])
        streams.defer(partial(write_sums, self.parts, sums), self.parts, sums)
        return gradient_x[:, : self.channels], self._field_gradients(sums.split(self.sizes))

    def _allocate(self) -> None:
        # Parts of the gradients of each stage's W, b, and β and γ, one after the other.
        self.sizes = [
            size
            for stage in self.stages
            for size in (stage.weight.numel(), stage.bias.numel(), stage.scale.numel() + stage.shift.numel())
        ]
        self.parts = self.x.new_empty(self.splits, sum(self.sizes), dtype=torch.float32)
        self.views = self.parts.split(self.sizes, dim=1)
        shape = self.layers, self.x.shape[0], pitch(self.channels)
        self.pull = torch.empty(shape, dtype=self.settings.storage, device=self.x.device)
        self.carry = torch.empty_like(self.pull) if self.last else self.pull

    def _stage(self, number: int, gradient: Tensor) -> None:
        """Parts of the gradients of a stage's fields, and the gradient at its input."""
        stages, moments, final, rows = self.stages, self.moments, number == self.last, self.x.shape[0]
        stage, following = stages[number], min(number + 1, self.last)
        values = self.outputs[number - 1] if number else self.x
        layer_stride = rows * pitch(stage.bias.shape[1])
        backward_stage[(self.layers, self.splits)](
            gradient if final else self.pull, self.views[3 * following + 2], self.parts.stride(0), self.splits,
            gradient if final else self.outputs[number], moments[following], stages[following].scale, self.carry,
            values, 0 if values.dim() == 2 else values.stride(0), moments[number], stage.scale, stage.shift,
            stage.weight, self.pull, self.views[3 * number + 2], self.views[3 * number], self.views[3 * number + 1],
            self.parts.stride(0), layer_stride, self.pull.stride(0), *self.rows, rows, self.dropout.seed,
            **self.dropout.arguments(number, self.last, rows), epsilon=self.settings.epsilon, splits=self.splits,
            PARTS=power_of_two(self.splits), **self._constants(number),
        )  # fmt: skip

    def _constants(self, number: int) -> dict[str, object]:
        final = number == self.last
        return {
            **super()._constants(number),
            "THROUGH_NORM": not final,
            # A bias right before a norm has no effect and hence no gradient.
            "PLAIN": number % 2 == 0 and not final,
            "ADD_CARRY": number % 2 == 1 and number < self.last - 1,
            "WRITE_CARRY": number % 2 == 1,
            "CLEAR": False,
            "FIRST": number == 0,
            "JOIN": number == 0 and self.last > 0,
        }

    def _input_gradient(self) -> Tensor:
        """∂x [R, pitch of K], summed over the layers."""
        gradient = torch.empty_like(self.x)
        rows = self.x.shape[0]
        input_gradient[(-(-rows // INPUT_ROWS),)](
            self.pull, summed(self.views[2]), self.x, self.moments[0], self.stages[0].scale, gradient,
            self.pull.stride(0), *self.rows, self.settings.epsilon, rows, self.layers, K=self.channels,
            PITCH=self.x.shape[1], WEIGHTED=self.rows.weight is not None, BLOCK_R=INPUT_ROWS,
            BLOCK_K=tile_width(self.channels),
        )  # fmt: skip
        return gradient

    def _field_gradients(self, sums: Sequence[Tensor]) -> list[Tensor]:
        """Gradients in the order of the fields: γ, β, W, b of each stage."""
        gradients: list[Tensor] = []
        for number, stage in enumerate(self.stages):
            linear, bias, norm = sums[3 * number : 3 * number + 3]
            shift, scale = norm.view(2, *stage.scale.shape)
            gradients += [scale, shift, linear.view_as(stage.weight), bias.view_as(stage.bias)]
        return gradients


def pitched(x: Tensor) -> Tensor:
    """x [..., D] in rows of its pitch, zeros after the channels."""
    missing = pitch(x.shape[-1]) - x.shape[-1]
    return F.pad(x, (0, missing)) if missing else x.contiguous()
