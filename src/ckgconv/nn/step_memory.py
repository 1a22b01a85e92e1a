"""The memory that a step needs for its pairs, estimated from their number before any of them is formed.

    with gradients      bytes = R [32 + s (κ + 4 D + 4 C)] + 3 s p
    without             bytes = R [32 + s (κ + 2 D + 2 C)]

κ values per row are those of the kernel (`kernel_memory`): what its layers keep for the backward pass, half as
much under autocast, or ψ of the layers that exist at once. The rest is what stem and convolution keep, and temporary
values; 32 bytes are indices, and 3 p the gradients and the two moments of AdamW.

The constants are as large as they may be without a measured peak below the formula, so that no step that fits is turned
away; one that comes close to the free memory may still fail. `benchmarks/step_memory.py --nodes 600`, one core of a
CPU: peaks are 1.0 to 1.2 times the formula in the training of accelerated models and 1.3 to 1.6 times in that of plain
modules, 1.1 to 3.1 times without gradients. On one H200, accelerated networks of 2 and of 4 blocks of width 32: 1.16
and 1.26 times in tf32, 1.04 and 1.16 times in bf16. Nodes are not counted.

A single layer without dropout inside its kernel computes pairs of one kind once (`kinds`), and there may be few kinds.
Where ψ of every pair is needed all the same, for dropout or softmax, it and what the convolution makes of it are
certain, s (3 D + 2 C) with gradients and s (2 D + 2 C) without. Elsewhere only coordinates and what finds their kinds
are, 8 s C: the peak of finding them is 1.02 to 1.2 times that for 3, 9 and 21 channels, on a ring and on a random graph
of 1,500 nodes. Once the kinds are known, the rows of the kernel are counted, by the first formula.

Legend: R rows of pairs, C coordinate channels, D width, s bytes of a value, p parameters.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.ops.precision import autocast_is_on
from ckgconv.pairs import Encoding
from ckgconv.pairs.memory import check_step_memory, count_all_pairs

INDEX_BYTES = 32


class RowSize(NamedTuple):
    """Values that a model has for each row of its pairs, with gradients where they are enabled."""

    kernel: int  # κ, halved by autocast
    rest: int

    def step_bytes(self, rows: int, parameters: int, dtype: torch.dtype) -> int:
        """Of a step on `rows`."""
        kernel = self.kernel // 2 if autocast_is_on() else self.kernel
        updated = 3 * dtype.itemsize * parameters if torch.is_grad_enabled() else 0
        return rows * (INDEX_BYTES + dtype.itemsize * (kernel + self.rest)) + updated


def row_size(kernel: int, width: int, channels: int) -> RowSize:
    """κ, D and C, where stem and kernel compute every row."""
    return RowSize(kernel, (4 if torch.is_grad_enabled() else 2) * (width + channels))


def least_row_size(width: int, channels: int) -> RowSize:
    """Width of ψ and C, where they may compute few."""
    return RowSize(0, (3 if torch.is_grad_enabled() else 2) * width + 2 * channels)


def kinds_row_size(channels: int) -> RowSize:
    """C, where only kinds of rows have features."""
    return RowSize(0, 8 * channels)


class ChecksStepMemory:
    """Mixin of modules that estimate the memory of a step on their pairs, and refuse one that does not fit."""

    encoding: Encoding
    # Bytes of the largest step allowed so far: the process still holds them, or can allocate them again.
    allowed_bytes: int = 0

    def step_bytes(self, rows: int) -> int:
        """Memory of a step on this many rows of pairs, with gradients where they are enabled; 0: not counted."""
        return 0

    def check_step(self, rows: int, device: torch.device) -> None:
        """Refuse a step on this many rows that would not fit into the memory of the device."""
        needed, remedy = self.step_bytes(rows), self.encoding.fewer_pairs
        self.allowed_bytes = check_step_memory(rows, needed, self.allowed_bytes, device, remedy)

    def check_all_pairs(self, data: Data) -> None:
        """The same, before any pair is formed, where the support is every pair of `data`."""
        x = getattr(data, "x", None)
        if isinstance(x, Tensor) and self.encoding.stores_all_pairs(data):
            self.check_step(count_all_pairs(x, getattr(data, "batch", None)), x.device)
