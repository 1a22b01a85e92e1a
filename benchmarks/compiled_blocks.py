"""Registers, stack and shared memory of the Triton kernels of the block pass, compiled for compute capability 9.0 at
the widths of ZINC in bf16, also without a GPU.

    python benchmarks/compiled_blocks.py

A stack that is not 0 means registers that spill.
"""

import re
from typing import Any

import triton
from compiled import LONG, REAL, WHOLE, dumped
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ckgconv.backends.cuda.block_pass import attention_kernels, gated_backward, gated_forward
from ckgconv.backends.cuda.block_pass.feed_forward import backward_ffn, forward_ffn
from ckgconv.backends.cuda.block_pass.gine_kernels import (
    backward_gine,
    backward_rectified,
    forward_gine,
    forward_output,
)
from ckgconv.backends.cuda.block_pass.gradients import products
from ckgconv.backends.cuda.block_pass.grit_kernels import (
    backward_output,
    backward_projections,
    forward_projections,
)
from ckgconv.backends.cuda.block_pass.grit_kernels import forward_output as forward_grit_output
from ckgconv.ops.launch import tile_width

POINTERS = dict.fromkeys((*LONG, "edge_filled", "pointer", "node_ptr"), "*i64")
NUMBERS = dict.fromkeys((*WHOLE, "v_stride", "v_splits", "state_count", "state_stride", "m_splits", "rows"), "i32")
NUMBERS |= dict.fromkeys((*REAL, "floor", "root_scale"), "fp32")
EIGHT, FOUR = {"num_warps": 8, "num_stages": 1}, {"num_warps": 4, "num_stages": 1}
# What GPS alone hands over.
ATTENTION = dict.fromkeys(("projection", "projection_bias", "qkv", "x_kept", "w", "w_moments", "w_scale", "w_sums"))
ATTENTION |= dict.fromkeys(("weight_y", "gradient_w", "gy", "gqkv"))
SECOND = dict.fromkeys(("s", "s_parts", "s_moments", "s_mean", "s_variance", "s_scale", "s_shift", "s_sums"))
GINE = (forward_gine, forward_ffn, backward_ffn, backward_gine, backward_rectified)
GATED = (gated_forward.forward_project, gated_forward.forward_join, gated_backward.backward_join)
GATED += (forward_ffn, backward_ffn, gated_backward.backward_project)
GRIT = (forward_projections, forward_grit_output, forward_ffn, backward_ffn, backward_output, backward_projections)
GATES = (gated_forward.forward_gates, gated_backward.backward_receivers, gated_backward.backward_senders)


def main() -> None:
    for name, width, kernels, more in (
        ("GINE+", 80, GINE, {**ATTENTION, **SECOND, "TWO": False, "ACTIVE": True}),
        ("GPS", 64, (*GINE, forward_output), {"TWO": True, "ACTIVE": False}),
        ("GRIT", 64, GRIT, {**SECOND, "TWO": False, "CHANNELS": 8}),
        ("GatedGCN+", 70, GATED, {**SECOND, "TWO": False, "BACK": True}),
    ):
        constants = {**sizes(width), **more}
        for kernel in kernels:
            report(name, kernel, constants, EIGHT)
        if name == "GatedGCN+":
            for kernel in GATES:
                report(name, kernel, {**constants, "BLOCK_N": 8}, EIGHT)
        report(name, products, constants, FOUR)
    heads = {
        **sizes(64),
        "C": 16,
        "HEADS": 16,
        "BIAS_PITCH": 0,
        "BLOCK_C": 16,
        "BLOCK_R": 32,
        "bias": None,
        "gbias": None,
    }
    for kernel in (attention_kernels.attend, attention_kernels.attend_backward):
        report("GPS", kernel, heads, FOUR)


def sizes(width: int) -> dict[str, Any]:
    """Constants of all kernels at a width."""
    rows = {"BLOCK_N": 16, "BLOCK_E": 32, "CHUNK": 4, "PARTS": 64, "V_PARTS": 64, "STATE_PARTS": 128}
    tiles = {"BLOCK_D": tile_width(width), "BLOCK_H": 128 if width <= 64 else 64, "HIDDEN": tile_width(2 * width)}
    factors = {"A": 2 * width, "B": width, "PIECE": 32, "SPAN": 128, "TILE": 64}
    gates = {"M_ROWS": 8, "M_PARTS": 128}
    return {
        "D": width,
        "H": 2 * width,
        "NORM": True,
        "DROP": True,
        "PRECISION": "tf32",
        **rows,
        **tiles,
        **factors,
        **gates,
    }


def report(name: str, kernel: Any, constants: dict[str, Any], options: dict[str, int]) -> None:
    """One line."""
    types = {**NUMBERS, **POINTERS, "share": "*fp32"}
    names = kernel.arg_names
    signature = {each: "constexpr" if each in constants else types.get(each, "*fp32") for each in names}
    values = {(place,): constants[each] for place, each in enumerate(names) if each in constants}
    aligned = {
        (place,): [["tt.divisibility", 16]] for place, each in enumerate(names) if signature[each].startswith("*")
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=values, attrs=aligned)
    done = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    found = re.search(r"REG:(\d+) STACK:(\d+)", dumped(done.asm["cubin"])[0])
    assert found is not None
    registers, stack = found.groups()
    print(
        f"{name:10} {kernel.__name__:20} {registers:>4} registers {stack:>4} stack {done.metadata.shared:>7} shared",
        flush=True,
    )


if __name__ == "__main__":
    main()
