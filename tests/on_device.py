"""Where Triton kernels are tested: on the GPU, or by Triton's interpreter where there is none."""

import importlib.util

import pytest
import torch

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"

HAS_TRITON = importlib.util.find_spec("triton") is not None

needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")


def relative(found, expected):
    """‖found - expected‖ / max(‖expected‖, 1), since some gradients vanish identically; NaN never passes."""
    found, expected = found.detach().double().cpu(), expected.detach().double().cpu()
    return float((found - expected).norm() / expected.norm().clamp(min=1.0))


def keep_mask(seed, rows, columns, probability):
    """What the kernels multiply with: 0, or the factor that keeps the expectation; [rows, columns]."""
    import triton
    from kept_kernel import write_kept

    from ckgconv.ops.launch import threshold, tile_width

    level, factor = threshold(probability)
    mask = torch.empty(rows, columns, device=DEVICE)
    write_kept[(triton.cdiv(rows, 16),)](mask, seed, rows, columns, level, factor, 16, tile_width(columns))
    return mask.cpu()
