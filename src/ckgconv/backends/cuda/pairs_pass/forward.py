"""The pairs pass forward, stage by stage; the Triton kernel is in `forward_stage`.

Legend: L layers, R rows, K channels in, D channels out, S parts (programs of a layer).
"""

import torch
from torch import Tensor

from ckgconv.backends.cuda.pairs_pass.forward_stage import forward_stage
from ckgconv.backends.cuda.pairs_pass.options import Direction, forward_launch
from ckgconv.backends.cuda.pairs_pass.row_kernels import row_moments
from ckgconv.ops.launch import pitch, power_of_two, tall_tile, tile_width


class Forward(Direction):
    """One forward pass."""

    choose_launch = staticmethod(forward_launch)

    def run(self, moments: Tensor | None, x_part: Tensor | None) -> list[Tensor]:
        """Outputs [L, R, pitch of D] of every stage, or only of the last in evaluation.

        Args:
            moments: [2B + 1, 3, L, K], where the batch's moments are written; None evaluates with running statistics.
            x_part: [3, K], the moments (W, μ, M₂) of x, where they are known.
        """
        self.moments = moments
        values, state, parts = self.x, self.x, self._input_parts(x_part)
        outputs: list[Tensor] = []
        for number in range(len(self.stages)):
            y, parts = self._stage(number, values, state, parts)
            # In evaluation nothing is kept for a backward pass.
            outputs = [y] if self.moments is None else [*outputs, y]
            values, state = y, y if number % 2 else state
        return outputs

    def _input_parts(self, x_part: Tensor | None) -> Tensor:
        """Parts [3, 1, ·, K] of the moments of x; computed here unless known, or not needed."""
        if x_part is not None:
            return x_part.view(3, 1, 1, self.channels)
        parts = self.x.new_empty(3, 1, self.splits, self.channels, dtype=torch.float32)
        if self.moments is not None:
            row_moments[(self.splits,)](
                self.x, parts, self.rows.weight, self.rows.filled, self.splits, K=self.channels,
                PITCH=self.x.shape[1], WEIGHTED=self.rows.weight is not None, BLOCK_K=tile_width(self.channels),
                **tall_tile(self.x.shape[0], self.channels),
            )  # fmt: skip
        return parts

    def _stage(self, number: int, values: Tensor, state: Tensor, parts: Tensor) -> tuple[Tensor, Tensor]:
        """Output of a stage, and the parts of its moments."""
        stage, settings, last, rows = self.stages[number], self.settings, self.last, self.x.shape[0]
        _, wide, narrow = stage.weight.shape
        dtype = settings.storage if number == last else settings.activation_dtype
        y = torch.empty(self.layers, rows, pitch(wide), dtype=dtype, device=self.x.device)
        y_parts = self.x.new_empty(3, self.layers, self.splits, wide, dtype=torch.float32)
        forward_stage[(self.layers, self.splits)](
            values, _layer_stride(values), parts, 0 if parts.shape[1] == 1 else self.splits * narrow,
            parts.stride(0), None if self.moments is None else self.moments[number], *settings.running[number],
            settings.momentum, stage.scale, stage.shift, stage.weight, stage.bias, state, _layer_stride(state), y,
            y.stride(0), y_parts, settings.running[min(number + 1, last)][0], *self.rows, self.dropout.seed,
            **self.dropout.arguments(number, last, rows), epsilon=settings.epsilon, count=parts.shape[2],
            splits=self.splits, PARTS=power_of_two(parts.shape[2]), BIAS=True, RESIDUAL=number % 2 == 1,
            GIVEN=self.moments is None, TRACK=self.moments is not None and number < last, **self._constants(number),
        )  # fmt: skip
        return y, y_parts


def _layer_stride(values: Tensor) -> int:
    """Entries from one layer to the next; 0 where all layers share a matrix."""
    return 0 if values.dim() == 2 else values.stride(0)
