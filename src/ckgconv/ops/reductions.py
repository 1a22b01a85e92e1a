"""Sums over parts, in a fixed order and by one launch.

    y = Σ_s p_s

Torch's reduction costs 10 to 20 µs for the few dozen parts that a pass leaves.

Legend: S parts, M values of each.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.launch import power_of_two
from ckgconv.ops.tiles import read_sums

VALUES, FEW_VALUES = 64, 16  # values per program
FEW = 2**14  # up to this many values, smaller programs hide latency better


@triton.jit
def add_parts(parts, part_stride, sums, splits, values, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    """Sums [M] of the parts [S, M], BLOCK of them in each program."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + columns, read_sums(parts, splits, part_stride, values, columns, PARTS), mask=columns < values)


def summed(parts: Tensor) -> Tensor:
    """[…] the sums of float32 parts [S, …], each of which is contiguous."""
    sums = torch.empty(parts.shape[1:], dtype=torch.float32, device=parts.device)
    write_sums(parts, sums)
    return sums


def write_sums(parts: Tensor, sums: Tensor) -> None:
    """The same, written into `sums` […]."""
    splits, values = parts.shape[0], sums.numel()
    size = VALUES if values > FEW else FEW_VALUES
    if values:
        add_parts[(-(-values // size),)](
            parts, parts.stride(0), sums, splits, values, BLOCK=size, PARTS=power_of_two(splits)
        )
