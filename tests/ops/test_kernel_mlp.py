"""All stages of a kernel in one operation: the numbers of `naive` and of the modules of `nn.kernel`."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from ckgconv.ops.kernel_mlp import Stage, applies, chunked, grouped, naive

pytestmark = pytest.mark.usefixtures("double")


def random_fields(blocks, width, channels):
    """Fields of all stages, one after the other."""
    outputs = [width] * (2 * blocks) + [channels]
    shapes = [shape for out in outputs for shape in ((width,), (width,), (out, width), (out,))]
    return [torch.randn(shape) for shape in shapes]


def gradients_of(operation, x, weight, fields):
    values = [value.clone().requires_grad_() for value in (x, *fields)]
    psi, means, variances, total = operation(values[0], weight, grouped(values[1:]), 1e-5)
    return [psi, *means, *variances, total, *torch.autograd.grad(psi.sin().sum(), values)]


@settings(deadline=None)
@given(st.integers(0, 2), st.integers(2, 40), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**31))
def test_chunked_equals_naive_forward_and_backward(blocks, rows, width, channels, seed):
    torch.manual_seed(seed)
    x, fields = torch.randn(rows, width) + 3, random_fields(blocks, width, channels)
    weight = torch.randint(0, 4, (rows,)).double()
    weight[:2] += 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunked, "CHUNK_BYTES", 7 * 8 * width)  # seven rows
        found = gradients_of(chunked.kernel_mlp, x, weight, fields)
    for one, other in zip(found, gradients_of(naive.kernel_mlp, x, weight, fields), strict=True):
        # A channel of variance near zero has gradients of size 1/√ε.
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("blocks", [0, 1])
def test_first_and_second_derivatives(blocks, monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 3 * 8 * 2)
    weight = torch.tensor([1.0, 0.0, 4.0, 2.0, 3.0])
    values = [torch.randn(5, 2), *random_fields(blocks, 2, 3)]

    def run(x, *fields):
        return chunked.kernel_mlp(x, weight, grouped(fields), 1e-2)[0]

    values = [value.requires_grad_() for value in values]
    assert gradcheck(run, values)
    assert gradgradcheck(run, values)


def test_rows_of_which_none_counts():
    """Padding alone: statistics are zero, as in `naive`."""
    x, fields = torch.randn(4, 3), random_fields(1, 3, 2)
    results = [gradients_of(each, x, torch.zeros(4), fields) for each in (chunked.kernel_mlp, naive.kernel_mlp)]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_float32_has_the_digits_of_the_modules():
    """Rows far from zero, many of them: within the rounding of the plain formula in float32."""
    torch.manual_seed(0)
    x, fields = torch.randn(30_000, 8) + 20, random_fields(2, 8, 8)
    weight = torch.randint(1, 9, (30_000,)).double()
    exact = naive.kernel_mlp(x, weight, grouped(fields), 1e-5)[0]
    errors = []
    for operation in (chunked.kernel_mlp, naive.kernel_mlp):
        single = [value.float() for value in (x, weight, *fields)]
        psi = operation(single[0], single[1], grouped(single[2:]), 1e-5)[0]
        errors.append((psi - exact).abs().max())
    assert errors[0] < 4 * errors[1]


def test_where_it_applies():
    x, weight, stages = torch.randn(4, 3), torch.ones(4), grouped(random_fields(1, 3, 2))
    assert applies(x, weight, stages)
    halves = [Stage(*(field.bfloat16() for field in stage)) for stage in stages]
    assert not applies(x, weight, halves)
    assert not applies(x[:0], weight[:0], stages)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not applies(x, weight, stages)
    with torch.autograd.forward_ad.dual_level():
        assert not applies(x, weight, stages)


def test_channels_whose_scale_is_zero(monkeypatch):
    """Sums over them are not divided by their factor."""
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 7 * 8 * 3)
    x, fields = torch.randn(20, 3), random_fields(2, 3, 3)
    for number in range(0, len(fields), 4):
        fields[number][number // 4 % 3] = 0
    weight = torch.randint(1, 4, (20,)).double()
    results = [gradients_of(each, x, weight, fields) for each in (chunked.kernel_mlp, naive.kernel_mlp)]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
