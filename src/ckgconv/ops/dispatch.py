"""The one rule by which operations run as Triton kernels.

    device   dtype      what runs
    cpu      any        plain torch
    cuda     float64    plain torch
    cuda     float32    Triton: fp32, tf32 where torch's float32 products may use it, bf16 under autocast;
                        plain torch below compute capability 8.0, and for tensors that do not fit (`fits`)
    any      any        plain torch under transforms of `torch.func` and in forward mode (`derivatives`)

Callers write `dispatch.uses_triton(x)` and never import the function by name, so that a test can replace `runs_triton`
here, once, and run every Triton kernel in Triton's interpreter.
"""

import importlib.util
import sys
from functools import cache

import torch
from torch import Tensor

from ckgconv.ops.derivatives import under_transform
from ckgconv.ops.launch import pitch, product_precision

WIDEST = 128  # channels of a tile
# Shared memory of the largest Triton kernel for more than 64 channels, as compiled; up to 64 channels, 74 KB suffice.
WIDE_BYTES, EXACT_WIDE_BYTES = 114_688, 196_608
OLDEST_CAPABILITY = (8, 0)  # the first with tf32


def runs_triton(device: torch.device) -> bool:
    """Whether Triton kernels run on a device."""
    return device.type == "cuda" and has_triton() and multiplies_tf32(device)


def uses_triton(x: Tensor) -> bool:
    """Whether an operation on x runs as a Triton kernel."""
    return x.dtype in (torch.float32, torch.bfloat16) and runs_triton(x.device) and not under_transform()


def fits(x: Tensor, rows: int, channels: int) -> bool:
    """Whether 32-bit offsets reach that many rows, and tiles of that many channels fit into shared memory."""
    if channels > WIDEST or rows * pitch(channels) >= 2**31:
        return False
    exact = product_precision() == "tf32x3"
    return channels <= 64 or shared_memory(x) >= (EXACT_WIDE_BYTES if exact else WIDE_BYTES)


def shared_memory(x: Tensor) -> int:
    """Bytes of shared memory available to one program on the device of x."""
    return _shared_memory(x.device.index) if x.is_cuda else sys.maxsize  # Triton's interpreter has no limit


@cache
def multiplies_tf32(device: torch.device) -> bool:
    """Whether the device is a GPU with the tf32 matrix units that the Triton kernels need."""
    return torch.cuda.is_available() and torch.cuda.get_device_capability(device) >= OLDEST_CAPABILITY


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


@cache
def _shared_memory(device: int) -> int:
    from triton.runtime import driver

    # The limit that Triton itself checks when it compiles.
    return int(driver.active.utils.get_device_properties(device)["max_shared_mem"])
