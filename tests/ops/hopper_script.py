"""Compiles kernels of the widest recipe for a Hopper GPU, without one, and prints the shared memory each takes."""

import json

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ckgconv.ops.kernel_mlp import kernels
from ckgconv.ops.node_pass import backward, forward

WIDTH, TILE = 96, 128
POINTERS = {"filled": "*i64", "seed": "*i64"} | dict.fromkeys(
    ("rowptr", "sender", "sender_ptr", "sender_rows", "sender_receiver"), "*i64"
)
NUMBERS = {
    **dict.fromkeys(("x_stride", "parts_stride", "parts_plane", "residual_stride", "y_stride", "draw"), "i32"),
    **dict.fromkeys(("threshold", "level", "dropped_rows", "splits", "part_stride", "group_stride", "N"), "i32"),
    **dict.fromkeys(("factor", "epsilon", "momentum"), "fp32"),
}
COMMON = {"PRECISION": "tf32x3", "DROP": True, "BLOCK_D": TILE, "PARTS": 64}
STAGE = {**COMMON, "K": WIDTH, "D": WIDTH, "K_PITCH": WIDTH, "D_PITCH": WIDTH, "WEIGHTED": True, "ACT": True}
STAGE |= {"SPARES": True, "BLOCK_K": TILE}
NODE = {**COMMON, "D": WIDTH, "BLOCK_N": 16}
KERNELS = [
    (kernels.forward_stage, {**STAGE, "BIAS": True, "RESIDUAL": True, "GIVEN": False, "TRACK": True, "BLOCK_R": 64}),
    (
        kernels.backward_stage,
        {**STAGE, "THROUGH_NORM": True, "PLAIN": False, "ADD_CARRY": True, "WRITE_CARRY": True, "BLOCK_R": 32},
    ),
    (
        forward.forward_convolution,
        {**NODE, "PITCH": WIDTH, "NORM": True, "GIVEN": False, "TRACK": True, "CHUNK": 8},
    ),
    (backward.backward_ffn, {**NODE, "H": 2 * WIDTH, "BLOCK_H": 64}),
]


def shared_memory(kernel, constants: dict[str, object]) -> int:
    """Bytes of shared memory of a kernel compiled for compute capability 9.0."""
    types = {**NUMBERS, **POINTERS}
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in kernel.arg_names}
    values = {(place,): constants[name] for place, name in enumerate(kernel.arg_names) if name in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=values)
    options = {"num_warps": 8, "num_stages": 1}
    return int(triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).metadata.shared)


if __name__ == "__main__":
    print(json.dumps({kernel.fn.__name__: shared_memory(kernel, constants) for kernel, constants in KERNELS}))
