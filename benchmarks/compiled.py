"""Figures of the Triton kernels compiled for compute capability 9.0 at the shapes of ZINC in bf16, also without a GPU:
registers, stack, shared memory, and the instructions of the innermost loop.

    python benchmarks/compiled.py

A value of a stage's loop is one entry of a tile of 32 rows of 64 channels: 16 for each of 128 threads.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ckgconv.backends.cuda.node_pass.backward_kernels import backward_convolution
from ckgconv.backends.cuda.node_pass.forward_kernels import forward_convolution
from ckgconv.backends.cuda.pairs_pass.backward_stage import backward_stage
from ckgconv.backends.cuda.pairs_pass.forward_stage import forward_stage
from ckgconv.backends.cuda.pairs_pass.options import backward_launch, forward_launch

WIDTH = 64
STAGE = {"K": WIDTH, "D": WIDTH, "K_PITCH": WIDTH, "D_PITCH": WIDTH, "WEIGHTED": False, "ACT": True, "SPARES": False}
STAGE |= {"PRECISION": "tf32", "BLOCK_K": WIDTH, "BLOCK_D": WIDTH, "PARTS": 64}
AHEAD, BACK = forward_launch(WIDTH, torch.bfloat16), backward_launch(WIDTH, torch.bfloat16)
FORWARD = {**STAGE, "BIAS": True, "GIVEN": False, "TRACK": True, "BLOCK_R": AHEAD.tile}
BACKWARD = {**STAGE, "THROUGH_NORM": True, "CLEAR": False, "FIRST": False, "JOIN": False, "BLOCK_R": BACK.tile}
START = {"PLAIN": True, "ADD_CARRY": False, "WRITE_CARRY": False, "DROP": False}
NODES = {"D": WIDTH, "PITCH": WIDTH, "PRECISION": "tf32", "DROP": True, "NORM": True, "BLOCK_N": 16, "CHUNK": 8}
NODES |= {"BLOCK_D": WIDTH, "PARTS": 64, "GIVEN": False, "TRACK": True, "PATH": False, "path": None, "EARLY": True}
CONVOLUTION = {"num_warps": 8, "num_stages": 1}
HALF = ("x", "y", "residual")
SHORT = ("g", "gx", "carry", "psi", "gpsi")
LONG = ("filled", "seed", "rowptr", "sender", "sender_ptr", "sender_rows", "sender_receiver")
REAL = ("factor", "epsilon", "momentum")
WHOLE = ("x_stride", "parts_stride", "parts_plane", "residual_stride", "y_stride", "part_stride", "group_stride")
WHOLE += ("gx_stride", "draw", "threshold", "level", "dropped_rows", "count", "g_count", "g_stride", "splits", "R", "N")
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, int]]] = {
    "forward, even stage": (forward_stage, {**FORWARD, "RESIDUAL": False, "DROP": False}, AHEAD.options),
    "forward, odd stage": (forward_stage, {**FORWARD, "RESIDUAL": True, "DROP": True}, AHEAD.options),
    "backward, even stage": (
        backward_stage,
        {**BACKWARD, **START},
        BACK.options,
    ),
    "backward, odd stage": (
        backward_stage,
        {**BACKWARD, "PLAIN": False, "ADD_CARRY": True, "WRITE_CARRY": True, "DROP": True},
        BACK.options,
    ),
    "backward, first stage": (
        backward_stage,
        {**BACKWARD, **START, "FIRST": True, "JOIN": True},
        BACK.options,
    ),
    "convolution": (forward_convolution, NODES, CONVOLUTION),
    "convolution backward": (backward_convolution, {**NODES, "BLOCK_N": 8}, CONVOLUTION),
}


def main() -> None:
    print(json.dumps({name: compiled(*case) for name, case in CASES.items()}, indent=1))


def compiled(kernel: Any, constants: dict[str, Any], options: dict[str, int]) -> dict[str, int]:
    """Figures of one Triton kernel."""
    types = dict.fromkeys(HALF, "*fp16") | dict.fromkeys(SHORT, "*bf16") | dict.fromkeys(LONG, "*i64")
    types |= dict.fromkeys(REAL, "fp32") | dict.fromkeys(WHOLE, "i32")
    if "NORM" in constants:
        types |= dict.fromkeys(HALF, "*fp32")
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in names}
    values = {(place,): constants[name] for place, name in enumerate(names) if name in constants}
    # Tensors start at multiples of 16 bytes, and so do rows of 64 channels.
    aligned = [place for place, name in enumerate(names) if signature[name].startswith("*") or "stride" in name]
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs=values,
        attrs={(place,): [["tt.divisibility", 16]] for place in aligned},
    )
    done = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    usage, code = dumped(done.asm["cubin"])
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert found is not None
    registers, stack = map(int, found.groups())
    return {"registers": registers, "stack": stack, "shared": done.metadata.shared, **innermost_loop(code)}


def dumped(cubin: bytes) -> tuple[str, str]:
    """Resource usage and machine code as text."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        outputs = [
            subprocess.run([tool, option, file.name], capture_output=True, text=True, check=True).stdout
            for option in ("--dump-resource-usage", "--dump-sass")
        ]
    return outputs[0], outputs[1]


def innermost_loop(code: str) -> dict[str, int]:
    """Instructions and barriers of the longest loop that holds no other."""
    lines = re.findall(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)([^;]*);", code)
    place = [(int(address, 16), name.split(".")[0], rest) for address, name, rest in lines]
    loops = []
    for address, name, rest in place:
        target = re.search(r"0x([0-9a-f]+)", rest) if name == "BRA" else None
        if target is not None and int(target.group(1), 16) < address:
            loops.append((int(target.group(1), 16), address))
    inner = [one for one in loops if not any(o != one and one[0] <= o[0] and o[1] <= one[1] for o in loops)]
    low, high = max(inner, key=lambda loop: loop[1] - loop[0])
    inside = [name for address, name, _ in place if low <= address <= high]
    return {
        "loop_instructions": len(inside),
        "loop_barriers": inside.count("BAR"),
        "loop_shuffles": inside.count("SHFL"),
    }


if __name__ == "__main__":
    main()
