"""The flat optimiser: equations against torch's AdamW, Triton kernels against the equations."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative

from ckgconv.backends.cuda.adamw import naive
from ckgconv.backends.cuda.adamw.naive import Moments, Rates


def start(size, dtype, device="cpu"):
    torch.manual_seed(1)
    parameter = torch.randn(size, dtype=dtype, device=device)
    zeros = [torch.zeros(size, dtype=dtype, device=device) for _ in range(2)]
    return parameter, Moments(*zeros, torch.zeros((), dtype=dtype, device=device))


@pytest.mark.parametrize("clip", [0.5, 1e6])
def test_the_equations_are_those_of_torch(clip):
    parameter, moments = start(1500, torch.float64)
    theirs = torch.nn.Parameter(parameter.clone())
    optimizer = torch.optim.AdamW([theirs], lr=1e-2, weight_decay=0.1)
    for _ in range(4):
        gradient = torch.randn(1500, dtype=torch.float64)
        naive.clipped_adamw(parameter, gradient, moments, torch.tensor(1e-2, dtype=torch.float64), Rates(clip, 0.1))
        theirs.grad = gradient
        torch.nn.utils.clip_grad_norm_([theirs], clip)
        optimizer.step()
    assert torch.allclose(parameter, theirs, rtol=1e-12, atol=1e-12)


@needs_triton
def test_the_first_steps_have_their_length():
    """From zero, so that no digit of the change is rounded away."""
    from ckgconv.backends.cuda.adamw import launch as fused

    exact, exact_moments = start(300, torch.float64)
    exact.zero_()
    rough, rough_moments = (exact.float().to(DEVICE), Moments(*(m.float().to(DEVICE) for m in exact_moments)))
    gradient = torch.randn(300, dtype=torch.float64)
    for _ in range(3):
        naive.clipped_adamw(exact, gradient, exact_moments, torch.tensor(1e-2), Rates(0.7, 0.1))
        rate = torch.tensor(1e-2, device=DEVICE)
        fused.clipped_adamw(rough, gradient.float().to(DEVICE), rough_moments, rate, Rates(0.7, 0.1))
        assert relative(rough, exact) < 1e-6


@needs_triton
@pytest.mark.parametrize("size", [700, 4096])
def test_the_kernel_is_the_equations(size):
    from ckgconv.backends.cuda.adamw import launch as fused

    exact, exact_moments = start(size, torch.float64)
    rough, rough_moments = (exact.float().to(DEVICE), Moments(*(m.float().to(DEVICE) for m in exact_moments)))
    for _ in range(3):
        gradient = torch.randn(size, dtype=torch.float64)
        naive.clipped_adamw(exact, gradient, exact_moments, torch.tensor(1e-2), Rates(0.7, 0.1))
        rate = torch.tensor(1e-2, device=DEVICE)
        fused.clipped_adamw(rough, gradient.float().to(DEVICE), rough_moments, rate, Rates(0.7, 0.1))
    assert relative(rough, exact) < 1e-6
    for mine, theirs in zip(rough_moments, exact_moments, strict=True):
        assert relative(mine, theirs) < 1e-6


@needs_triton
@pytest.mark.parametrize("size", [700, 4096])
def test_the_average_of_the_weights_is_part_of_the_update(size):
    from ckgconv.backends.cuda.adamw import launch as fused

    rates = Rates(0.7, 0.1, ema_decay=0.9)
    exact, exact_moments = start(size, torch.float64)
    exact_average = torch.randn(size, dtype=torch.float64)
    rough, rough_moments = (exact.float().to(DEVICE), Moments(*(m.float().to(DEVICE) for m in exact_moments)))
    rough_average = exact_average.float().to(DEVICE)
    for _ in range(3):
        gradient, before = torch.randn(size, dtype=torch.float64), exact_average.clone()
        naive.clipped_adamw(exact, gradient, exact_moments, torch.tensor(1e-2), rates, exact_average)
        torch.testing.assert_close(exact_average, 0.9 * before + 0.1 * exact, rtol=1e-12, atol=1e-12)
        rate = torch.tensor(1e-2, device=DEVICE)
        fused.clipped_adamw(rough, gradient.float().to(DEVICE), rough_moments, rate, rates, rough_average)
    assert relative(rough, exact) < 1e-6
    assert relative(rough_average, exact_average) < 1e-6
