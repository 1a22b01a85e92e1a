"""GELU in float16: its arithmetic, and the instructions, which only a GPU has."""

import pytest
import torch
from on_device import CUDA
from torch.nn import functional as F

FAR = (6.0, 8.0, 100.0, 30000.0)


def test_the_arithmetic_adds_less_than_rounding_to_bfloat16():
    """The error that the docstring of `ops.tiles` states, with an exact tanh."""
    n = torch.randn(2**18).half()
    exact = F.gelu(n.double())
    m = n.clamp(-6, 6)
    square = m * m
    argument = m * ((square * -0.00035190239 + 0.03700802) * square + 0.79750528)
    found = (n * torch.tanh(argument) + n).double() / 2
    rounded = exact.to(torch.bfloat16).double()
    error, rounding = ((values - exact).square().mean().sqrt() for values in (found, rounded))
    assert error < 3e-4
    assert error < rounding / 4


@pytest.mark.skipif(not CUDA, reason="float16 instructions need a GPU")
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
