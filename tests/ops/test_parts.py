"""GELU in float16 instructions, which only a GPU has."""

import pytest
import torch
from on_device import CUDA
from torch.nn import functional as F

pytestmark = pytest.mark.skipif(not CUDA, reason="float16 instructions need a GPU")

FAR = (6.0, 8.0, 100.0, 30000.0)


def test_gelu_and_its_slope():
    from half_kernel import write_gelu

    n = torch.cat([torch.randn(8192 - 2 * len(FAR)), torch.tensor(FAR), -torch.tensor(FAR)]).cuda()
    twice, active, slope = (torch.empty_like(n) for _ in range(3))
    write_gelu[(len(n) // 1024,)](n, twice, active, slope, 1024)
    exact = n.double().requires_grad_()
    expected = F.gelu(exact)
    (wanted,) = torch.autograd.grad(expected.sum(), exact)
    for found, right, size in ((twice / 2, expected, n), (active, expected, n), (slope, wanted, torch.ones_like(n))):
        error = (found.double() - right).abs()
        assert error[: -2 * len(FAR)].square().mean().sqrt() < 5e-4
        assert (error / size.abs().clamp(min=1)).max() < 4e-3
