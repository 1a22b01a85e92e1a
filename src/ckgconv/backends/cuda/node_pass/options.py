"""What both directions of the node pass share: settings, sizes of tiles, options of launches.

Legend: N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from ckgconv.ops.launch import block, launch, threshold

NODES = 16  # rows of a tile: the least that matrix units take
PROGRAMS = 256  # more parts would cost more to add up than they save


Running = Sequence[tuple[Tensor, Tensor]]  # mean and variance [D] of both norms of each block, one after the other


class Settings(NamedTuple):
    """What has no gradient."""

    running: Running
    momentum: float
    dropout: float
    epsilon: float
    precision: str

    def drops(self, number: int) -> dict[str, Any]:
        """Arguments of the dropout of that number."""
        level, factor = threshold(self.dropout)
        return {"draw": number, "level": level, "factor": factor, "DROP": self.dropout > 0}


def convolution_launch(psi: Tensor) -> dict[str, int]:
    """Senders that are read at once, and warps: with four of them, values would not fit into registers."""
    return {"num_warps": 8, "num_stages": 1, "CHUNK": 8, "PITCH": psi.stride(1)}


def ffn_launch() -> dict[str, int]:
    """Of the FFN forward, whose programs wait for two matrices: more warps wait less. Backward, four are faster."""
    return {"num_warps": 8, "num_stages": 1}


def plain_launch(width: int, settings: Settings) -> dict[str, int]:
    """Of the other kernels; matrices that are taken apart need twice the registers."""
    return {**launch(width), **({"num_warps": 8} if settings.precision == "tf32x3" else {})}


def hidden_tile(width: int, hidden: int) -> int:
    """Hidden channels at once: all of them where both matrices fit on chip."""
    return min(block(hidden), 128 if width <= 64 else 64)


def parts_of(nodes: int, tile: int = NODES) -> int:
    """S: one program for each tile, as long as there are not too many."""
    return min(PROGRAMS, -(-nodes // tile))
