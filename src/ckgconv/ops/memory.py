"""Memory that outlives a step: on a CPU, fresh pages cost as much time as what is computed in them."""

import weakref
from typing import Any

import torch
from torch import Tensor

SLACK = 1.2  # batches differ in size
LARGEST_HEAP_CHUNK = 31 * 2**20


class Memory:
    """A block that one borrower at a time fills; it is free again when nothing refers to the borrower any more.

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
            _keep_freed_pages()
            self._block = torch.empty(int(SLACK * size), dtype=torch.uint8, device="cpu")
        self._borrower = weakref.ref(borrower)
        return list(self._block[:size].view(like.dtype).view(count, *like.shape).unbind(0))

    def __reduce__(self) -> tuple[type["Memory"], tuple[()]]:
        return Memory, ()


def _keep_freed_pages() -> None:
    """Free one large chunk: the C library then takes all up to its size from a heap whose freed end it keeps.

    Before, it hands the pages of each freed tensor of some megabytes back to the system (mallopt(3), M_MMAP_THRESHOLD).
    """
    torch.empty(LARGEST_HEAP_CHUNK, dtype=torch.uint8, device="cpu")
