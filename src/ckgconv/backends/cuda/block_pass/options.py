"""What all blocks of message passing share: settings, edges by both ends, sizes of tiles.

Legend: N nodes, E edges, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.options import NODES, hidden_tile
from ckgconv.ops.launch import power_of_two, threshold, tile_width
from ckgconv.ops.rows import order_of

CHUNK = 4  # edges of a node at once: atoms have at most four

BlockStatistics = Sequence[Sequence[tuple[Tensor, Tensor]]]  # mean and variance [D] of the norms of each block


class EdgeLists(NamedTuple):
    """Edges in the order of their receivers."""

    pointer: Tensor  # [N + 1] receiver i owns edges pointer[i] … pointer[i + 1] - 1
    sender: Tensor  # [E]
    sender_ptr: Tensor  # [N + 1] sender j owns entries sender_ptr[j] … sender_ptr[j + 1] - 1 of the two lists below
    sender_rows: Tensor  # [E] edges whose sender is j
    sender_receiver: Tensor  # [E] their receivers


def edge_lists(edge_index: Tensor, nodes: int) -> tuple[EdgeLists, Tensor]:
    """The edges [2, E], senders above receivers, and the places [E] that they had before."""
    by_receiver = order_of(edge_index[1], nodes)
    sender, receiver = edge_index[:, by_receiver.entries]
    by_sender = order_of(sender, nodes)
    return EdgeLists(by_receiver.pointer, sender, *by_sender, receiver[by_sender.entries]), by_receiver.entries


class Settings(NamedTuple):
    """What has no gradient."""

    running: BlockStatistics  # moves towards the batch's statistics
    momentum: float
    epsilon: float
    dropout: float
    precision: str


class Sizes:
    """Sizes of a pass over x [N, D] with hidden layers of H, as its Triton kernels take them."""

    def __init__(self, x: Tensor, hidden: int, settings: Settings) -> None:
        self.nodes, self.width = x.shape
        self.hidden, self.device = hidden, x.device
        self.splits = -(-self.nodes // NODES)
        self.tile: dict[str, Any] = {"D": self.width, "BLOCK_N": NODES, "BLOCK_D": tile_width(self.width)}
        self.tile |= {"num_warps": 8, "num_stages": 1, "epsilon": settings.epsilon}
        self.parts = power_of_two(self.splits)
        self.norms = {"splits": self.splits, "PARTS": self.parts}
        self.ffn = {"H": hidden, "BLOCK_H": hidden_tile(self.width, hidden), "PRECISION": settings.precision}

    def empty(self, *shape: int) -> Tensor:
        """Uninitialised float32 on the device."""
        return torch.empty(*shape, dtype=torch.float32, device=self.device)


def dropout_arguments(probability: float, draw: int) -> dict[str, Any]:
    """Arguments of the dropout of that number."""
    level, factor = threshold(probability)
    return {"draw": draw, "level": level, "factor": factor, "DROP": probability > 0}
