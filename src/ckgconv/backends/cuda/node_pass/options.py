"""What both directions of the node pass share: settings, sizes of tiles, options of launches.

Legend: N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from ckgconv.backends.cuda.streams import Streams
from ckgconv.ops.launch import early_options, launch_options, threshold, tile_width

NODES = 16  # rows of a tile: the fewest that matrix units accept
PROGRAMS = 256  # more parts would cost more to sum than they save

NormStatistics = Sequence[tuple[Tensor, Tensor]]  # mean and variance [D] of both norms of each block, in turn


class Block(NamedTuple):
    """Parameters of one block."""

    theta1: Tensor  # [D]
    theta2: Tensor  # [D]
    weight: Tensor  # [D, D] W
    bias: Tensor  # [D]
    scale: Tensor  # [D] of the norm after the convolution
    shift: Tensor  # [D]
    weight_in: Tensor  # [H, D] W₁
    bias_in: Tensor  # [H]
    weight_out: Tensor  # [D, H] W₂
    bias_out: Tensor  # [D]
    scale_out: Tensor  # [D] of the norm after the feed-forward network
    shift_out: Tensor  # [D]


class Lists(NamedTuple):
    """The support as lists over receivers and over senders: what a gather needs in either direction."""

    rowptr: Tensor  # [N + 1] receiver i owns rows rowptr[i] … rowptr[i + 1] - 1
    sender: Tensor  # [P]
    sender_ptr: Tensor  # [N + 1] sender j owns entries sender_ptr[j] … sender_ptr[j + 1] - 1 of the two lists below
    sender_rows: Tensor  # [P] rows whose sender is j
    sender_receiver: Tensor  # [P] their receivers
    support_size: Tensor  # [N] floating
    degree: Tensor  # [N] floating


class Dropout(NamedTuple):
    """Of the node pass: of single values, and of whole blocks."""

    seed: Tensor  # [1] int64, of all masks
    probability: float
    paths: Tensor | None = None  # [L, N] factor of the branches of each block; None: 1

    def arguments(self, number: int) -> dict[str, Any]:
        """Arguments of the dropout of that number: 2l and 2l + 1 in block l."""
        level, factor = threshold(self.probability)
        path = None if self.paths is None else self.paths[number // 2]
        single = {"draw": number, "level": level, "factor": factor, "DROP": self.probability > 0}
        return {**single, "path": path, "PATH": path is not None}


class Settings(NamedTuple):
    """What has no gradient."""

    running: NormStatistics  # moves towards the batch's statistics
    momentum: float
    epsilon: float
    precision: str
    streams: Streams


class Direction:
    """One direction of the pass over x [N, D] with kernels ψ [L, P, D]: its operands, and options of its launches.

    `filled` [1]: nodes from there on are padding.
    """

    def __init__(
        self,
        x: Tensor,
        psi: Tensor,
        lists: Lists,
        blocks: Sequence[Block],
        settings: Settings,
        filled: Tensor,
        dropout: Dropout,
    ) -> None:
        self.x, self.psi, self.lists, self.blocks = x, psi, lists, blocks
        self.settings, self.filled, self.dropout = settings, filled, dropout
        (self.nodes, self.width), self.hidden = x.shape, blocks[0].weight_in.shape[0]
        self.plain, self.early = plain_options(self.width, settings), early_options(x)


def convolution_options(psi: Tensor) -> dict[str, int]:
    """Senders per chunk, and eight warps: with four, values would not fit into registers."""
    return {"num_warps": 8, "num_stages": 1, "CHUNK": 8, "PITCH": psi.stride(1)}


def ffn_options() -> dict[str, int]:
    """Of the FFN forward, whose programs wait for two matrices: eight warps hide that. Backward, four are faster."""
    return {"num_warps": 8, "num_stages": 1}


def plain_options(width: int, settings: Settings) -> dict[str, int]:
    """Of the other launches; matrices split into tf32 parts need twice the registers."""
    return {**launch_options(width), **({"num_warps": 8} if settings.precision == "tf32x3" else {})}


def hidden_tile(width: int, hidden: int) -> int:
    """Hidden channels of a tile: all of them where both matrices fit into shared memory."""
    return min(tile_width(hidden), 128 if width <= 64 else 64)


def parts_of(nodes: int, tile: int = NODES) -> int:
    """S: one program per tile, but at most `PROGRAMS`."""
    return min(PROGRAMS, -(-nodes // tile))
