"""At least float32 where 16 bits would round too much: sums over rows, batch statistics, raw coordinates, stems, heads.

    float16, bfloat16 → float32        float32, float64 as they are

Stems and heads cost little, and raw coordinates span decades; a sum of 300 ones is 256 in bfloat16.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

HALVES = (torch.float16, torch.bfloat16)


def without_autocast(x: Tensor) -> torch.autocast:
    """A context in which operations on the device of x keep the dtype of their inputs."""
    return torch.autocast(x.device.type, enabled=False)


@contextmanager
def exact_products() -> Iterator[None]:
    """A context in which products of float32 matrices keep all digits, though training may use tf32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def autocast_converts(x: Tensor, dtype: torch.dtype) -> bool:
    """Whether autocast is on and brings x and parameters of that dtype together."""
    return torch.is_autocast_enabled(x.device.type) and {x.dtype, dtype} <= {torch.float32, *HALVES}


def autocast_is_on() -> bool:
    """On any device."""
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which values of another are summed."""
    return torch.float32 if dtype in HALVES else dtype


def widened(x: Tensor) -> Tensor:
    """x in at least float32."""
    return x.to(wide_dtype(x.dtype))


def narrower(one: torch.dtype, other: torch.dtype) -> torch.dtype:
    """The dtype with fewer bytes, the first of two that are equally wide."""
    return other if other.itemsize < one.itemsize else one
