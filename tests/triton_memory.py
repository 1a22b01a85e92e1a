"""Kernels that Triton's interpreter runs touch nothing but the tensors they are given, and read what is written alone.

On a GPU a load from elsewhere may find memory of the same process and go unnoticed, and new memory is often zero. Here
new memory is full of NaN, which not even a product with zero removes.
"""

import numpy as np
import pytest
import torch
from on_device import CUDA, HAS_TRITON

UNWRITTEN = float("nan")


class Guarded:
    """The interpreter's memory, by address; every access is looked up among the tensors of the launch."""

    def __init__(self, memory):
        self.memory, self.starts, self.stops = memory, np.empty(0), np.empty(0)

    def allow(self, tensors):
        spans = {(t.untyped_storage().data_ptr(), t.untyped_storage().nbytes()) for t in tensors}
        self.starts = np.array(sorted(start for start, _ in spans), dtype=np.uint64)
        self.stops = np.array([start + size for start, size in sorted(spans)], dtype=np.uint64)

    def check(self, pointers, mask):
        touched = np.asarray(pointers)[np.asarray(mask)].astype(np.uint64)
        place = np.searchsorted(self.starts, touched, side="right") - 1
        inside = (place >= 0) & (touched < self.stops[place])
        assert inside.all(), f"{(~inside).sum()} of {touched.size} accesses lie outside all tensors of the launch"

    def load(self, pointers, mask, other, dtype):
        self.check(pointers, mask)
        return self.memory.load(pointers, mask, other, dtype)

    def store(self, pointers, value, mask):
        self.check(pointers, mask)
        return self.memory.store(pointers, value, mask)

    def atomic_rmw(self, operation, pointers, value, mask, order):
        self.check(pointers, mask)
        return self.memory.atomic_rmw(operation, pointers, value, mask, order)

    def __getattr__(self, name):
        return getattr(self.memory, name)


@pytest.fixture(autouse=True)
def _inside(monkeypatch):
    if CUDA or not HAS_TRITON:
        return
    from triton.runtime import interpreter

    guarded, prepare = Guarded(interpreter._interpreter), interpreter.GridExecutor._init_args_hst

    def prepared(self, arguments, named):
        found = prepare(self, arguments, named)
        guarded.allow([each for each in (*found[0], *found[1].values()) if isinstance(each, torch.Tensor)])
        return found

    monkeypatch.setattr(interpreter, "_interpreter", guarded)
    monkeypatch.setattr(interpreter.GridExecutor, "_init_args_hst", prepared)


@pytest.fixture(autouse=True)
def _filled(monkeypatch):
    if CUDA or not HAS_TRITON:
        return

    def filling(make):
        def made(*arguments, **named):
            tensor = make(*arguments, **named)
            return tensor.detach().fill_(UNWRITTEN) if tensor.dtype in (torch.float32, torch.float64) else tensor

        return made

    for owner, name in ((torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")):
        monkeypatch.setattr(owner, name, filling(getattr(owner, name)))
