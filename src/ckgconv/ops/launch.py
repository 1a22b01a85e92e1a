"""Sizes and options of launches that all Triton kernels share, and the precision they compute in.

Storage has 16 bits under autocast, bfloat16 wherever the range matters, and float32 otherwise; sums, statistics and
gradients of parameters are always float32.
"""

import torch
from torch import Tensor

LEVELS = 2**16  # resolution of a dropout decision
INTERPRETED_PROGRAMS = 4


def storage(x: Tensor) -> torch.dtype:
    """The dtype in which large tensors of any range are kept."""
    return torch.bfloat16 if torch.is_autocast_enabled(x.device.type) else torch.float32


def product_precision() -> str:
    """How Triton multiplies float32 matrices: three products of tf32 parts keep the digits of float32."""
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def programs(x: Tensor, busy: int) -> int:
    """How many programs there are with `busy` of them on each multiprocessor."""
    if not x.is_cuda:
        return INTERPRETED_PROGRAMS
    return busy * torch.cuda.get_device_properties(x.device).multi_processor_count


def threshold(probability: float) -> tuple[int, float]:
    """What 16 random bits must stay below for an entry to be kept, and the factor that keeps the expectation."""
    level = round(LEVELS * (1 - probability))
    return level, LEVELS / level if level else 0.0


def draw_seeds(device: torch.device, count: int) -> Tensor:
    """[count, 1] seeds of dropout masks from torch's generator: a replayed CUDA graph draws new ones each time."""
    return torch.randint(2**31, (count, 1), device=device)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()


def block(channels: int) -> int:
    """Width of the tile that holds so many channels; matrix units take 16 at least."""
    return max(16, power_of_two(channels))


def pitch(channels: int) -> int:
    """Entries from one row of a large tensor to the next: a multiple of 16 bytes, so that loads are 16 bytes wide."""
    return -(-channels // 8) * 8


def tall(rows: int, width: int) -> dict[str, int]:
    """Rows of a tile and warps of a program that has a multiprocessor to itself: many rows need many in flight."""
    rows_at_once, warps = (128, 8) if rows <= 2**16 else (256, 16)
    return {"BLOCK_R": rows_at_once if width <= 64 else rows_at_once // 2, "num_warps": warps}


def early_launch(x: Tensor) -> dict[str, bool]:
    """Options of a launch that may begin before the previous one has ended: compute capability 9.0 and newer."""
    if x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0):
        return {"EARLY": True, "launch_pdl": True}
    return {"EARLY": False}


def launch(width: int) -> dict[str, int]:
    """Warps of a program, so that a tile of the width fits into registers; loads bypass shared memory."""
    return {"num_warps": 4 if width <= 64 else 8, "num_stages": 1}
