"""What stands in for the float16 instructions of `ops.parts` by Triton's interpreter, which knows no assembly."""

import triton
import triton.language as tl

from ckgconv.ops.tiles import gelu, gelu_and_slope


@triton.jit
def saturated(values):
    return tl.minimum(tl.maximum(values, -65504.0), 65504.0).to(tl.float16)


@triton.jit
def twice_gelu(n):
    return (2.0 * gelu(n.to(tl.float32))).to(tl.float16)


@triton.jit
def half_gelu_and_slope(n, layout):
    active, slope = gelu_and_slope(n.to(tl.float32))
    return active.to(tl.float16), slope.to(tl.float16)
