"""The pairs pass forward, stage after stage; the kernel is in `forward_stage`.

Legend: L layers, R rows, K channels in, D channels out, S parts (programs of a layer).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ckgconv.backends.cuda.pairs_pass.forward_stage import forward_stage
from ckgconv.backends.cuda.pairs_pass.options import Dropout, Rows, Settings, forward_launch, splits_of
from ckgconv.backends.cuda.pairs_pass.row_kernels import row_moments
from ckgconv.backends.stages import Stage
from ckgconv.ops.launch import block, pitch, power_of_two, tall


class Forward:
    """One forward pass over x [R, pitch of K].

    Args:
        moments: [2B + 1, 3, L, K], where the batch's moments are written; None evaluates with running statistics.
    """

    def __init__(
        self,
        x: Tensor,
        stages: Sequence[Stage],
        settings: Settings,
        rows: Rows,
        dropout: Dropout,
        moments: Tensor | None,
    ) -> None:
        self.x, self.stages, self.settings, self.rows = x, stages, settings, rows
        self.dropout, self.moments = dropout, moments
        self.layers, self.channels = stages[0].scale.shape
        self.last = len(stages) - 1
        self.launch = forward_launch(self.channels, settings.storage)
        self.splits = splits_of(x, self.layers, self.launch.busy, self.launch.tile)

    def run(self, x_part: Tensor | None) -> list[Tensor]:
        """Outputs [L, R, pitch of D] of every stage, or of the last alone in evaluation."""
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
                PITCH=self.x.shape[1], WEIGHTED=self.rows.weight is not None, BLOCK_K=block(self.channels),
                **tall(self.x.shape[0], self.channels),
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
            splits=self.splits, PARTS=power_of_two(parts.shape[2]), **self._constants(number, wide, narrow),
        )  # fmt: skip
        return y, y_parts

    def _constants(self, number: int, wide: int, narrow: int) -> dict[str, object]:
        """What a stage is compiled for."""
        return {
            "K": narrow,
            "D": wide,
            "K_PITCH": pitch(narrow),
            "D_PITCH": pitch(wide),
            "WEIGHTED": self.rows.weight is not None,
            "ACT": number < self.last,
            "BIAS": True,
            "RESIDUAL": number % 2 == 1,
            "GIVEN": self.moments is None,
            "TRACK": self.moments is not None and number < self.last,
            "PRECISION": self.settings.precision,
            "BLOCK_R": self.launch.tile,
            "BLOCK_K": block(narrow),
            "BLOCK_D": block(wide),
            **self.launch.options,
        }


def _layer_stride(values: Tensor) -> int:
    """Entries from one layer to the next; all layers share a matrix."""
    return 0 if values.dim() == 2 else values.stride(0)
