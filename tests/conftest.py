import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# Without a GPU the kernels are run by Triton's interpreter, which is chosen when they are first loaded.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

    from untraced import leave_kernels_untraced

    leave_kernels_untraced()

# No deadline: the first call of an operation may compile or allocate; no stored examples: each run is the same.
settings.register_profile("ckgconv", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("ckgconv")


@pytest.fixture
def double():
    """Tests that need float64 everywhere."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _products():
    """A run in tf32 or bf16 leaves its products to the process, and so to the next test on a GPU."""
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.fixture
def bfloat16(monkeypatch):
    """Products of bfloat16 and GELU in float16 instructions, of which Triton's interpreter has neither."""
    from on_device import CUDA, HAS_TRITON

    if CUDA or not HAS_TRITON:
        return
    import plain_gelu
    import triton.language as tl
    from triton.runtime import interpreter

    from ckgconv.backends.cuda.attention_pass import forward_kernel
    from ckgconv.backends.cuda.pairs_pass import backward_stage, forward_stage, row_kernels

    builder = interpreter.InterpreterBuilder
    multiply = builder.create_dot

    def widened(handle):
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return interpreter.TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def create_dot(self, a, b, *rest):
        return multiply(self, widened(a), widened(b), *rest)

    convert = interpreter._convert_float

    def rounded(values, source, target, mode):
        """To the nearest, as a GPU does, where the interpreter cuts off."""
        if (source, target) != (tl.float32, tl.bfloat16):
            return convert(values, source, target, mode)
        bits = np.ascontiguousarray(values).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)

    monkeypatch.setattr(builder, "create_dot", create_dot)
    monkeypatch.setattr(interpreter, "_convert_float", rounded)
    monkeypatch.setattr(forward_stage, "twice_gelu", plain_gelu.twice_gelu)
    monkeypatch.setattr(backward_stage, "half_gelu_and_slope", plain_gelu.half_gelu_and_slope)
    for module in (forward_kernel, forward_stage, row_kernels):
        monkeypatch.setattr(module, "saturated", plain_gelu.saturated)
