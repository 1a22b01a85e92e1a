"""Memory that outlives a step: on a CPU, page faults in fresh memory cost as much time as the computation."""

import ctypes
import platform
import weakref
from functools import cache
from typing import Any

import torch
from torch import Tensor

SLACK = 1.2  # batches differ in size
LARGEST_KEPT = 2**30  # bytes of a tensor whose pages are kept
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)


class Memory:
    """A buffer for one borrower at a time; it is free again once nothing refers to the borrower.

    Copies and pickles of it are empty.
    """

    def __init__(self) -> None:
        self._block = torch.empty(0, dtype=torch.uint8, device="cpu")
        self._borrower: Any = None

    def borrow(self, borrower: object, count: int, like: Tensor) -> list[Tensor]:
        """`count` tensors of the shape and dtype of `like`, uninitialised; fresh ones while another still borrows."""
        size = count * like.numel() * like.element_size()
        if self._borrower is not None and self._borrower() is not None:
            return list(torch.empty(count, *like.shape, dtype=like.dtype, device="cpu").unbind(0))
        if self._block.numel() < size:
            keep_freed_pages()
            self._block = torch.empty(int(SLACK * size), dtype=torch.uint8, device="cpu")
        self._borrower = weakref.ref(borrower)
        return list(self._block[:size].view(like.dtype).view(count, *like.shape).unbind(0))

    def __reduce__(self) -> tuple[type["Memory"], tuple[()]]:
        return Memory, ()


@cache
def keep_freed_pages() -> None:
    """Let the C library keep the pages of freed tensors for the next ones, where it is glibc, for the whole process.

    Otherwise each tensor of more than 32 MB gets fresh pages from the system and returns them. With 30,000 nodes and
    sparse global support this reduces a step from 5.5 s to 1.5 s, for 4.6 GB instead of 2.5 (`benchmarks/scale.py`).
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
        library.mallopt(M_TRIM_THRESHOLD, -1)
