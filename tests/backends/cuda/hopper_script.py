"""Compiles the Triton kernels of the widest recipe for a Hopper GPU, without one, and prints their shared memory."""

import json

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ckgconv.backends.cuda.adamw import launch as adamw
from ckgconv.backends.cuda.attention_pass import backward_kernel, forward_kernel
from ckgconv.backends.cuda.block_pass import (
    attention_kernels,
    feed_forward,
    gated_backward,
    gated_forward,
    gine_kernels,
    grit_kernels,
)
from ckgconv.backends.cuda.block_pass import gradients as block_gradients
from ckgconv.backends.cuda.head import launch as pyramid
from ckgconv.backends.cuda.node_pass import aggregate, backward_kernels, forward_kernels, gradients
from ckgconv.backends.cuda.pairs_pass.backward import INPUT_ROWS
from ckgconv.backends.cuda.pairs_pass.backward_stage import backward_stage
from ckgconv.backends.cuda.pairs_pass.forward_stage import forward_stage
from ckgconv.backends.cuda.pairs_pass.row_kernels import input_gradient
from ckgconv.ops.convolution import triton as convolution
from ckgconv.ops.lookup import triton as lookup

WIDTH, TILE = 96, 128
POINTERS = dict.fromkeys(("filled", "edge_filled", "seed", "index", "targets", "node_ptr"), "*i64") | dict.fromkeys(
    ("rowptr", "receiver", "sender", "sender_ptr", "sender_rows", "sender_receiver", "pointer", "other", "row"), "*i64"
)
NUMBERS = {
    **dict.fromkeys(("x_stride", "parts_stride", "parts_plane", "residual_stride", "y_stride", "draw"), "i32"),
    **dict.fromkeys(
        ("threshold", "level", "dropped_rows", "splits", "part_stride", "group_stride", "gx_stride", "N", "rows"), "i32"
    ),
    **dict.fromkeys(("v_stride", "v_splits", "nodes", "count", "g_count", "g_stride", "R", "groups"), "i32"),
    **dict.fromkeys(("factor", "epsilon", "momentum", "clip_norm", "weight_decay"), "fp32"),
    **dict.fromkeys(("log_beta1", "log_beta2", "share1", "share2", "share"), "fp32"),
    **dict.fromkeys(("size", "state_count", "state_stride"), "i32"),
    **dict.fromkeys(("floor", "root_scale", "clamp", "state_factor"), "fp32"),
    "state_threshold": "i32",
}
COMMON = {"PRECISION": "tf32x3", "DROP": True, "BLOCK_D": TILE, "PARTS": 64}
STAGE = {**COMMON, "K": WIDTH, "D": WIDTH, "K_PITCH": WIDTH, "D_PITCH": WIDTH, "WEIGHTED": True, "ACT": True}
STAGE |= {"SPARES": True, "BLOCK_K": TILE}
NODE = {**COMMON, "D": WIDTH, "PITCH": WIDTH, "BLOCK_N": 16, "V_PARTS": 64, "PATH": True, "EARLY": True}
FORWARD = {**STAGE, "BIAS": True, "RESIDUAL": True, "GIVEN": False, "TRACK": True, "BLOCK_R": 64}
BACKWARD = {**STAGE, "THROUGH_NORM": True, "PLAIN": False, "ADD_CARRY": True, "WRITE_CARRY": True, "BLOCK_R": 32}
BACKWARD |= {"CLEAR": False, "FIRST": False, "JOIN": False}
START = {"WRITE_CARRY": False, "ADD_CARRY": False, "PLAIN": True, "DROP": False, "SPARES": False}
STEM = {
    "K": 25,
    "K_PITCH": 25,
    "BLOCK_K": 32,
    "ACT": False,
    "DROP": False,
    "SPARES": False,
    "PARTS": 128,
    "BLOCK_R": 64,
}
CONVOLUTION = {**NODE, "NORM": True, "CHUNK": 8}
HEAD = {"D": 128, "H1": 64, "H2": 32, "T": 11, "BLOCK_H1": 64, "BLOCK_H2": 32, "BLOCK_T": 16, "BLOCK_M": 16}
HEAD |= {"RELU": False}
MATRIX = {"PRECISION": "tf32x3", "PIECE": 32, "SPAN": 128, "TILE": 64}
LISTS = {"D": WIDTH, "BLOCK_D": TILE}
TABLE = {"V": 119, "D": WIDTH, "BLOCK_M": 64, "BLOCK_V": 64}
# What a Triton kernel is compiled for: constants, options, and the pointers that are not to float32.
STAGES = dict.fromkeys(("x", "y", "residual"), "*fp16") | dict.fromkeys(("g", "gx", "carry"), "*bf16")
PSI = {"psi": "*bf16", "gpsi": "*bf16"}
EIGHT = {"num_warps": 8, "num_stages": 1}
BLOCKS = {**COMMON, "D": WIDTH, "BLOCK_N": 16, "CHUNK": 4, "NORM": True, "ACTIVE": True, "V_PARTS": 64}
BLOCKS |= {"H": 2 * WIDTH, "BLOCK_H": 64, "HIDDEN": 256, "TWO": True, "BLOCK_E": 32, "STATE_PARTS": 128, "BACK": True}
GATES = {**BLOCKS, "BLOCK_N": 8}
HEADS = {"PRECISION": "tf32x3", "DROP": True, "D": WIDTH, "C": 24, "HEADS": 16, "BLOCK_R": 32, "BLOCK_C": 32}
HEADS |= {"BIAS_PITCH": 8}
FOUR = {"num_warps": 4, "num_stages": 1}
GRIT = {"PRECISION": "tf32x3", "D": 64, "BLOCK_D": 64, "BLOCK_N": 16, "CHANNELS": 8, "NORM": True, "PARTS": 64}
PAIRS = {"PRECISION": "tf32x3", "D": 64, "PITCH": 64, "BLOCK_D": 64, "BLOCK_R": 16, "HEADS": 8, "NORMED": True}
PAIRS |= {"TRACK": True, "CONTINUED": True, "DROP": True, "DROP_STATE": True}
STATES = {"z": "*fp16", "z_next": "*fp16"} | dict.fromkeys(("g", "gz", "g_both"), "*bf16")
CASES = {
    "forward stage": (forward_stage, FORWARD, EIGHT, {}),
    "forward stage, bf16": (forward_stage, FORWARD, {"num_warps": 8, "num_stages": 2, "maxnreg": 128}, STAGES),
    "backward stage": (backward_stage, BACKWARD, EIGHT, {}),
    "backward stage, bf16": (
        backward_stage,
        BACKWARD,
        {"num_warps": 16, "num_stages": 2, "maxnreg": 128},
        STAGES,
    ),
    "first stage backward": (backward_stage, {**BACKWARD, **START, "FIRST": True, "JOIN": True}, EIGHT, {}),
    "input gradient": (
        input_gradient,
        {"K": WIDTH, "PITCH": WIDTH, "WEIGHTED": True, "BLOCK_R": INPUT_ROWS, "BLOCK_K": TILE},
        {"num_warps": 4},
        {},
    ),
    "stem": (forward_stage, {**FORWARD, **STEM, "BIAS": False}, {"num_warps": 16, "num_stages": 1}, {}),
    "stem backward": (
        backward_stage,
        {**BACKWARD, **STEM, "PLAIN": True, "ADD_CARRY": False, "CLEAR": True, "gx": None},
        {"num_warps": 16, "num_stages": 1},
        {},
    ),
    "convolution": (forward_kernels.forward_convolution, {**CONVOLUTION, "GIVEN": False, "TRACK": True}, EIGHT, {}),
    "sum over senders, bf16": (
        aggregate.aggregate,
        {**CONVOLUTION, "GIVEN": False, "TILE": 16, "BLOCK_N": 4, "CHUNK": 16},
        {**EIGHT, "maxnreg": 128},
        PSI,
    ),
    "projection": (aggregate.project, {**NODE, "TRACK": True}, EIGHT, {}),
    "convolution backward, bf16": (backward_kernels.backward_convolution, CONVOLUTION, EIGHT, PSI),
    "ffn": (
        forward_kernels.forward_ffn,
        {**NODE, "GIVEN": False, "TRACK": True, "H": 2 * WIDTH, "BLOCK_H": 64},
        EIGHT,
        {},
    ),
    "ffn backward": (backward_kernels.backward_ffn, {**NODE, "H": 2 * WIDTH, "BLOCK_H": 64}, EIGHT, {}),
    "matrices": (
        gradients.matrix_gradients,
        {**MATRIX, "D": WIDTH, "H": 2 * WIDTH, "PITCH": WIDTH, "SQUARE": 4, "OBLONG": 6},
        {"num_warps": 4, "num_stages": 1},
        {},
    ),
    "block ffn": (feed_forward.forward_ffn, BLOCKS, EIGHT, {}),
    "block ffn backward": (feed_forward.backward_ffn, BLOCKS, EIGHT, {}),
    "gine": (gine_kernels.forward_gine, BLOCKS, EIGHT, {"share": "*fp32"}),
    "gine backward": (gine_kernels.backward_gine, BLOCKS, EIGHT, {}),
    "gine messages backward": (gine_kernels.backward_rectified, BLOCKS, EIGHT, {"share": "*fp32"}),
    "attention": (attention_kernels.attend, HEADS, FOUR, {"bias": "*bf16"}),
    "attention backward": (attention_kernels.attend_backward, HEADS, FOUR, {"bias": "*bf16", "gbias": "*bf16"}),
    "projections of GRIT": (grit_kernels.forward_projections, GRIT, EIGHT, {}),
    "output of GRIT": (grit_kernels.forward_output, GRIT, EIGHT, {}),
    "output of GRIT backward": (grit_kernels.backward_output, GRIT, EIGHT, {}),
    "projections of GRIT backward": (grit_kernels.backward_projections, GRIT, EIGHT, {}),
    "attention over pairs": (forward_kernel.attend, PAIRS, FOUR, {}),
    "attention over pairs backward": (backward_kernel.attend_backward, PAIRS, EIGHT, {}),
    "attention over pairs, bf16": (forward_kernel.attend, {**PAIRS, "BLOCK_R": 32}, FOUR, STATES),
    "attention over pairs backward, bf16": (backward_kernel.attend_backward, {**PAIRS, "BLOCK_R": 32}, EIGHT, STATES),
    "gated": (gated_forward.forward_project, BLOCKS, EIGHT, {}),
    "gates": (gated_forward.forward_gates, GATES, EIGHT, {}),
    "gated backward": (gated_backward.backward_project, BLOCKS, EIGHT, {}),
    "receivers backward": (gated_backward.backward_receivers, GATES, EIGHT, {}),
    "senders backward": (gated_backward.backward_senders, GATES, EIGHT, {}),
    "block matrices": (block_gradients.products, {**MATRIX, "A": 2 * WIDTH, "B": WIDTH}, FOUR, {}),
    "sums over lists, bf16": (
        convolution.list_sums,
        {**LISTS, "PITCH": WIDTH, "TWO": True, "LISTED": True, "NODES": 4, "PAIRS": 16},
        EIGHT,
        PSI,
    ),
    "products, bf16": (convolution.products, {**LISTS, "ROWS": 64}, EIGHT, {"gradient": "*bf16"}),
    "table": (lookup.table_gradient, {**COMMON, **TABLE}, EIGHT, {}),
    "rows at their targets": (lookup.add_rows, {"D": WIDTH, "BLOCK_M": 8, "BLOCK_D": TILE}, {"num_warps": 4}, {}),
    "update": (adamw.update, {"BLOCK": 1024, "PARTS": 256, "AVERAGED": True, "EARLY": True}, {"num_warps": 4}, {}),
    "head backward": (pyramid.backward_pyramid, {**COMMON, **HEAD}, {"num_warps": 4}, {}),
}


def shared_memory(kernel, constants: dict[str, object], options: dict[str, int], pointers: dict[str, str]) -> int:
    """Bytes of shared memory of a Triton kernel compiled for compute capability 9.0."""
    types = {**NUMBERS, **POINTERS, **pointers}
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in kernel.arg_names}
    values = {(place,): constants[name] for place, name in enumerate(kernel.arg_names) if name in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=values)
    return int(triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).metadata.shared)


if __name__ == "__main__":
    print(json.dumps({name: shared_memory(*case) for name, case in CASES.items()}))
