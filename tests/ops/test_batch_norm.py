"""Covers `ckgconv.ops.all_reduce`."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from ckgconv.ops.batch_norm import analytic, naive

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
