"""What both directions of the pairs pass share: settings, sizes of tiles, options of launches.

Legend: L groups (layers), R rows, K channels in, S parts (programs of a group).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.streams import Streams
from ckgconv.backends.stages import StageStatistics
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.kernel_mlp import Stage
from ckgconv.ops.launch import launch_options, pitch, product_precision, programs, storage, threshold, tile_width


class Launch(NamedTuple):
    """Programs per SM, rows of a tile, and the options with which a program is compiled.

    Warps in flight hide latency, and registers limit their number: with the limits below next to nothing spills, and 16
    warps (forward) or 12 (backward; 16 of half as many values where rows are wide) run on an SM.
    """

    busy: int
    tile: int
    options: dict[str, int]


def forward_launch(width: int, dtype: torch.dtype) -> Launch:
    """Of a forward stage."""
    if dtype != torch.bfloat16:
        return Launch(2, 32, launch_options(width))
    return Launch(4 if width <= 64 else 2, 32, {**launch_options(width), "num_stages": 2, "maxnreg": 128})


def backward_launch(width: int, dtype: torch.dtype) -> Launch:
    """Of a backward stage, which holds ∂W in registers as well."""
    if dtype != torch.bfloat16:
        return Launch(2 if width <= 64 else 1, 32, launch_options(width))
    if width > 64:
        return Launch(1, 32, {"num_warps": 16, "num_stages": 2, "maxnreg": 128})
    return Launch(3, 32, {**launch_options(width), "num_stages": 2, "maxnreg": 168})


class Dropout(NamedTuple):
    """Of the pairs pass; rows from `rows` on are not dropped."""

    seed: Tensor  # [1] int64, of all masks
    mlp: float  # probability at the end of each block
    kernel: float  # and on ψ
    rows: int

    def arguments(self, number: int, last: int, rows: int) -> dict[str, Any]:
        """Arguments of the dropout after stage `number`, for that many rows."""
        probability = self.kernel if number == last else self.mlp * (number % 2)
        level, factor = threshold(probability)
        arguments = {"draw": number, "threshold": level, "factor": factor, "dropped_rows": self.rows}
        return {**arguments, "DROP": probability > 0, "SPARES": self.rows < rows}


class Rows(NamedTuple):
    """Which rows of the pair features count."""

    weight: Tensor | None  # [R] how often each counts; None: once
    filled: Tensor  # [1] integer, rows from there on are padding: neither read nor written


class Settings(NamedTuple):
    """What has no gradient."""

    running: StageStatistics  # moves towards the batch's statistics
    momentum: float
    epsilon: float
    storage: torch.dtype
    precision: str
    streams: Streams

    @property
    def activation_dtype(self) -> torch.dtype:
        """Of values between stages: float16 has three more mantissa bits than bfloat16, and norms keep the range."""
        return torch.float16 if self.storage == torch.bfloat16 else self.storage


class Direction:
    """One direction of the pass over x [R, pitch of K]: its operands, and how its stages are launched."""

    choose_launch: Callable[[int, torch.dtype], Launch]  # of a direction: width and storage → programs, tile, options

    def __init__(self, x: Tensor, stages: Sequence[Stage], settings: Settings, rows: Rows, dropout: Dropout) -> None:
        self.x, self.stages, self.settings, self.rows, self.dropout = x, stages, settings, rows, dropout
        self.layers, self.channels = stages[0].scale.shape
        self.last = len(stages) - 1
        self.launch = self.choose_launch(self.channels, settings.storage)
        self.splits = splits_of(x, self.layers, self.launch.busy, self.launch.tile)

    def _constants(self, number: int) -> dict[str, object]:
        """What stage `number` is compiled for in either direction."""
        _, wide, narrow = self.stages[number].weight.shape
        return {
            "K": narrow,
            "D": wide,
            "K_PITCH": pitch(narrow),
            "D_PITCH": pitch(wide),
            "WEIGHTED": self.rows.weight is not None,
            "ACT": number < self.last,
            "PRECISION": self.settings.precision,
            "BLOCK_R": self.launch.tile,
            "BLOCK_K": tile_width(narrow),
            "BLOCK_D": tile_width(wide),
            **self.launch.options,
        }


def settings_of(x: Tensor, running: StageStatistics, norm: WeightedBatchNorm, streams: Streams) -> Settings:
    """The settings of a pass over x, in the precision of the current context."""
    return Settings(running, norm.momentum, norm.epsilon, storage(x), product_precision(), streams)


def rows_of(x: Tensor, weight: Tensor | None, filled: Tensor | None) -> Rows:
    """All rows of x are real where `filled` is None."""
    if filled is None:
        filled = torch.full((1,), x.shape[0], dtype=torch.int32, device=x.device)
    return Rows(weight, filled)


def splits_of(x: Tensor, groups: int, busy: int, tile: int) -> int:
    """S: all groups together fill the device, but no part is empty."""
    splits = max(1, min(programs(x, busy) // groups, -(-x.shape[0] // tile)))
    # Tiles of parts have powers of two: a few more parts than that cost as much as twice as many.
    below = 1 << (splits.bit_length() - 1)
    return below if splits < 1.1 * below else splits
