"""What both directions of the pairs pass share: settings, sizes of tiles, options of launches.

Legend: L groups (layers), R rows, K channels in, S parts (programs of a group).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.ops.launch import launch, programs, threshold

Running = Sequence[tuple[Tensor, Tensor]]  # mean and variance [L, K] of each stage's norm


class Launch(NamedTuple):
    """How many programs share a multiprocessor, rows of a tile, and with what options a program is compiled.

    Warps in flight hide what a stage waits for, and registers limit them: with the caps below next to nothing spills,
    and 16 warps (forward) or 12 (backward; 16 of half as many values where rows are wide) run at once.
    """

    busy: int
    tile: int
    options: dict[str, int]


def forward_launch(width: int, dtype: torch.dtype) -> Launch:
    """Of a forward stage."""
    if dtype != torch.bfloat16:
        return Launch(2, 32, launch(width))
    return Launch(4 if width <= 64 else 2, 32, {**launch(width), "num_stages": 2, "maxnreg": 128})


def backward_launch(width: int, dtype: torch.dtype) -> Launch:
    """Of a backward stage, which holds ∂W as well."""
    if dtype != torch.bfloat16:
        return Launch(2 if width <= 64 else 1, 32, launch(width))
    if width > 64:
        return Launch(1, 32, {"num_warps": 16, "num_stages": 2, "maxnreg": 128})
    return Launch(3, 32, {**launch(width), "num_stages": 2, "maxnreg": 168})


class Settings(NamedTuple):
    """What has no gradient."""

    running: Running
    momentum: float
    mlp_dropout: float
    kernel_dropout: float
    dropped_rows: int
    epsilon: float
    storage: torch.dtype
    precision: str

    @property
    def between(self) -> torch.dtype:
        """Of values between stages: of 16 bits three more are digits than in bfloat16, and norms keep them in range."""
        return torch.float16 if self.storage == torch.bfloat16 else self.storage

    def drops(self, number: int, last: int, rows: int) -> dict[str, Any]:
        """Arguments of the dropout of so many rows behind stage `number`."""
        probability = self.kernel_dropout if number == last else self.mlp_dropout * (number % 2)
        level, factor = threshold(probability)
        arguments = {"draw": number, "threshold": level, "factor": factor, "dropped_rows": self.dropped_rows}
        return {**arguments, "DROP": probability > 0, "SPARES": self.dropped_rows < rows}


def splits_of(x: Tensor, groups: int, busy: int, tile: int) -> int:
    """S: all groups together fill the device, but no part is without rows."""
    splits = max(1, min(programs(x, busy) // groups, -(-x.shape[0] // tile)))
    # Parts are read in powers of two: a few more than one of them cost as much as twice as many.
    below = 1 << (splits.bit_length() - 1)
    return below if splits < 1.1 * below else splits
