"""Lets kernels compile ahead for a device that only says what it is; prints what was compiled, found and computed."""

import json

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from ckgconv.backends.cuda.compilation import ahead, compiling


class Hopper:
    """As much of a driver as compiling takes."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


@triton.jit
def add_one(x, N):
    place = tl.arange(0, 16)
    tl.store(x + place, tl.load(x + place) + 1.0, mask=place < N)


@triton.jit
def broken(x):
    tl.store(x + tl.arange(0, 15), 1.0)  # no power of two


class Square(torch.autograd.Function):
    """Whose backward pass launches."""

    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        add_one[(1,)](gradient.int(), 16)
        return gradient


driver.set_active(Hopper())
run, x = triton.runtime.jit.JITFunction.run, torch.zeros(16)
with compiling("training", lambda sentence: None) as counts:
    with ahead():
        for size in (16, 16, 15):
            add_one[(1,)](x, size)
        broken[(1,)](x)
        Square.apply(x.clone().requires_grad_()).sum().backward()
    compiled = counts.compiled
    for size in (16, 15):
        add_one.warmup(x, size, grid=(1,))
assert triton.runtime.jit.JITFunction.run is run
try:
    broken.warmup(x, grid=(1,)).result()
except triton.CompilationError:
    said = True
print(json.dumps([compiled, counts.compiled, float(x.abs().sum()), said]))
