"""The one rule by which fused kernels are chosen, and the precision they compute in.

    device   dtype      what runs
    cpu      any        plain torch
    cuda     float64    plain torch
    cuda     float32    Triton: fp32, tf32 where torch's float32 products may use it, bf16 under autocast;
                        plain torch before compute capability 8.0, and for rows too many or too wide (`fits`)

Storage is of 16 bits under autocast, bfloat16 wherever the range matters, and float32 otherwise; sums, statistics and
gradients of parameters are float32 always.
"""

import importlib.util
import sys
from functools import cache

import torch
from torch import Tensor

LEVELS = 2**16  # decisions of dropout have this resolution
WIDEST = 128  # channels of a tile
# Shared memory of the largest kernel for more than 64 channels, as compiled; up to 64, 74 KB do on every GPU.
WIDE_BYTES, EXACT_WIDE_BYTES = 114_688, 196_608


def fused(x: Tensor) -> bool:
    """Whether an operation on x runs as a Triton kernel."""
    return x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and _has_triton() and _multiplies_tf32(x.device)


def fits(x: Tensor, rows: int, channels: int) -> bool:
    """Whether the kernels can number the entries of so many rows, and hold tiles of so many channels on chip."""
    if channels > WIDEST or rows * pitch(channels) >= 2**31:
        return False
    exact = product_precision() == "tf32x3"
    return channels <= 64 or on_chip(x) >= (EXACT_WIDE_BYTES if exact else WIDE_BYTES)


def on_chip(x: Tensor) -> int:
    """Bytes of shared memory that a program may take."""
    return _shared_memory(x.device.index) if x.is_cuda else sys.maxsize  # for Triton's interpreter


def storage(x: Tensor) -> torch.dtype:
    """The dtype in which large tensors of any range are kept."""
    return torch.bfloat16 if torch.is_autocast_enabled(x.device.type) else torch.float32


def product_precision() -> str:
    """How Triton multiplies float32 matrices: three products of tf32 parts keep the digits of float32."""
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def programs(x: Tensor, busy: int) -> int:
    """How many programs there are with so many on each multiprocessor."""
    if not x.is_cuda:
        return 4  # Triton's interpreter
    return busy * torch.cuda.get_device_properties(x.device).multi_processor_count


def threshold(probability: float) -> tuple[int, float]:
    """What 16 random bits must stay below for an entry to be kept, and the factor that keeps the expectation."""
    level = round(LEVELS * (1 - probability))
    return level, LEVELS / level if level else 0.0


def draw_seeds(device: torch.device, count: int) -> Tensor:
    """[count, 1] seeds for the masks of so many passes, from torch's generator: new at each replay of a step too."""
    return torch.randint(2**31, (count, 1), device=device)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()


def block(channels: int) -> int:
    """Width of the tile that holds so many channels; matrix units take 16 at least."""
    return max(16, power_of_two(channels))


def pitch(channels: int) -> int:
    """Entries from one row of a large tensor to the next: with multiples of 16 bytes a thread loads so many at once."""
    return -(-channels // 8) * 8


def tall(rows: int, width: int) -> dict[str, int]:
    """Rows of a tile and warps of a program that has a multiprocessor to itself: many rows need many in flight."""
    rows_at_once, warps = (128, 8) if rows <= 2**16 else (256, 16)
    return {"BLOCK_R": rows_at_once if width <= 64 else rows_at_once // 2, "num_warps": warps}


def early_launch(x: Tensor) -> dict[str, bool]:
    """Options of a launch that may begin before the one in front of it has ended: compute capability 9.0 on."""
    if x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0):
        return {"EARLY": True, "launch_pdl": True}
    return {"EARLY": False}


def launch(width: int) -> dict[str, int]:
    """Warps of a program, so that a tile of the width fits into its registers; loads are not staged on chip."""
    return {"num_warps": 4 if width <= 64 else 8, "num_stages": 1}


@cache
def _multiplies_tf32(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def _shared_memory(device: int) -> int:
    from triton.runtime import driver

    # The figure by which Triton itself refuses a kernel.
    return int(driver.active.utils.get_device_properties(device)["max_shared_mem"])


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
