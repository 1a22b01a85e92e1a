"""Covers `ckgconv.ops.all_reduce`."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from on_device import DEVICE, needs_triton, relative
from torch.autograd import gradcheck

from ckgconv.ops.batch_norm import Running, analytic, naive

pytestmark = pytest.mark.usefixtures("double")


@given(st.integers(0, 2), st.integers(2, 9), st.integers(1, 4), st.booleans(), st.integers(0, 2**31))
def test_analytic_equals_naive_forward_and_backward(groups, rows, channels, weighted, seed):
    torch.manual_seed(seed)
    lead = (groups,) if groups else ()
    x = torch.randn(*lead, rows, channels)
    weight = torch.randint(0, 4, (rows,)).double() + torch.eye(rows)[0] if weighted else None
    scale, shift = torch.randn(*lead, channels), torch.randn(*lead, channels)
    results = []
    for operation in (naive.weighted_batch_norm, analytic.weighted_batch_norm):
        inputs = [value.clone().requires_grad_() for value in (x, scale, shift)]
        y, mean, variance, total = operation(inputs[0], weight, inputs[1], inputs[2], 1e-5)
        gradients = torch.autograd.grad(y.sin().sum(), inputs)
        results.append([y, mean, variance, total, *gradients])
    for one, other in zip(*results, strict=True):
        # A channel of variance near zero has gradients of size 1/√ε.
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_gradcheck():
    weight = torch.tensor([1.0, 0.0, 4.0, 2.0])
    inputs = tuple(torch.randn(*shape, requires_grad=True) for shape in ((4, 3), (3,), (3,)))
    for operation in (naive.weighted_batch_norm, analytic.weighted_batch_norm):
        for rows in (weight, None):

            def run(x, scale, shift, operation=operation, rows=rows):
                return operation(x, rows, scale, shift, 1e-5)[0]

            assert gradcheck(run, inputs)


@needs_triton
@pytest.mark.parametrize(
    ("rows", "channels", "weighted"), [(1, 3, False), (5, 8, True), (700, 20, True), (40, 64, False)]
)
def test_few_rows_by_triton_equal_the_plain_ones(rows, channels, weighted):
    from ckgconv.ops.batch_norm import tracking

    x, scale, shift = torch.randn(rows, channels) + 3, torch.randn(channels), torch.randn(channels)
    weight = (torch.rand(rows) > 0.3).double() if weighted else None
    pull, running = torch.randn(rows, channels), (torch.randn(channels), torch.rand(channels) + 1)
    results = []
    for operation, dtype, device in (
        (tracking.tracking_batch_norm, torch.float64, "cpu"),
        (by_triton, torch.float32, DEVICE),
    ):
        inputs = [value.to(device, dtype, copy=True).requires_grad_() for value in (x, scale, shift)]
        moved = [value.to(device, dtype, copy=True) for value in running]
        counted = None if weight is None else weight.to(device, dtype)
        y = operation(inputs[0], counted, inputs[1:], Running(*moved, 0.1), 1e-5)
        results.append([y, *torch.autograd.grad((y * pull.to(y)).sum(), inputs), *moved])
    for expected, found in zip(*results, strict=True):
        assert relative(found, expected) < 1e-4


@needs_triton
def test_triton_leaves_second_derivatives_to_the_specification():
    x, scale, shift = (torch.randn(size, dtype=torch.float32, device=DEVICE) for size in ((6, 3), (3,), (3,)))
    weight = torch.tensor([1.0, 0, 2, 1, 1, 1], dtype=torch.float32, device=DEVICE)
    second = []
    for operation in (
        lambda x: by_triton(x, weight, (scale, shift), Running(shift.clone(), scale.abs(), 0.1), 1e-5),
        lambda x: naive.weighted_batch_norm(x, weight, scale, shift, 1e-5)[0],
    ):
        leaf = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(operation(leaf).sin().sum(), leaf, create_graph=True)
        second.append(torch.autograd.grad(first.square().sum(), leaf)[0])
    assert relative(second[0], second[1]) < 1e-4


def by_triton(x, weight, affine, running, epsilon):
    from ckgconv.ops.batch_norm import triton

    return triton.TrackingBatchNorm.apply(x, weight, *affine, *running, epsilon)
