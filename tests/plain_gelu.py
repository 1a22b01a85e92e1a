"""What stands in for the float16 instructions of `ops.parts` by Triton's interpreter, which knows no assembly."""

import triton
import triton.language as tl

from ckgconv.ops.parts import gelu, gelu_and_slope


@triton.jit
def half_gelu(n):
    return gelu(n).to(tl.float16)


@triton.jit
def half_gelu_and_slope(n, beside):
    active, slope = gelu_and_slope(n)
    return active.to(tl.float16), slope.to(tl.float16)
