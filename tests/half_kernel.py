"""Writes what the float16 instructions of `ops.parts` compute."""

import triton
import triton.language as tl

from ckgconv.ops.tiles import half_gelu_and_slope, saturated, twice_gelu


@triton.jit
def write_gelu(n, twice, active, slope, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(n + place)
    half = saturated(values)
    tl.store(twice + place, twice_gelu(half).to(tl.float32))
    first, second = half_gelu_and_slope(half, values)
    tl.store(active + place, first.to(tl.float32))
    tl.store(slope + place, second.to(tl.float32))
