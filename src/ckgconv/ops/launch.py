"""Sizes and options that the launches of all Triton kernels share, and the precision they compute in.

Large tensors are stored in 16 bits under autocast, as bfloat16 wherever the range matters, and in float32 otherwise;
sums, statistics and gradients of parameters are always float32.
"""

import torch
from torch import Tensor

from ckgconv.ops.dropout.packed import inverse_share, levels_kept

INTERPRETED_PROGRAMS = 4


def storage(x: Tensor) -> torch.dtype:
    """The dtype in which large tensors of any range are stored."""
    return torch.bfloat16 if torch.is_autocast_enabled(x.device.type) else torch.float32


def product_precision() -> str:
    """How Triton multiplies float32 matrices: three products of tf32 parts keep the digits of float32."""
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def programs(x: Tensor, busy: int) -> int:
    """Programs of a launch with `busy` of them on each SM."""
    if not x.is_cuda:
        return INTERPRETED_PROGRAMS
    return busy * torch.cuda.get_device_properties(x.device).multi_processor_count


def threshold(probability: float) -> tuple[int, float]:
    """The bound on 16 random bits below which an entry is kept, and the factor that preserves the expectation."""
    level = levels_kept(probability)
    return level, inverse_share(level)


def draw_seeds(device: torch.device, count: int) -> Tensor:
    """[count, 1] seeds of dropout masks from torch's generator: a replayed CUDA graph draws new ones each time."""
    return torch.randint(2**31, (count, 1), device=device)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()


def tile_width(channels: int) -> int:
    """Width of the tile that holds that many channels; matrix units need at least 16."""
    return max(16, power_of_two(channels))


def pitch(channels: int) -> int:
    """Entries from one row of a large tensor to the next: a multiple of 16 bytes, so that loads are 16 bytes wide."""
    return -(-channels // 8) * 8


def tall_tile(rows: int, width: int) -> dict[str, int]:
    """Rows of a tile and warps of a program that has an SM to itself: many warps hide the latency of many loads."""
    rows_at_once, warps = (128, 8) if rows <= 2**16 else (256, 16)
    return {"BLOCK_R": rows_at_once if width <= 64 else rows_at_once // 2, "num_warps": warps}


def early_options(x: Tensor) -> dict[str, bool]:
    """Options of a launch that may start before the previous one has ended: compute capability 9.0 and newer."""
    if x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0):
        return {"EARLY": True, "launch_pdl": True}
    return {"EARLY": False}


def launch_options(width: int) -> dict[str, int]:
    """Warps of a program, so that a tile of that width fits into registers; without software pipelining of loads."""
    return {"num_warps": 4 if width <= 64 else 8, "num_stages": 1}
