"""The stem by Triton kernels against its equation: output, moments and every gradient."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative

from ckgconv.backends.cuda.stem import naive

pytestmark = needs_triton


@pytest.mark.parametrize(("rows", "channels", "width", "weighted"), [(150, 9, 20, True), (70, 22, 16, False)])
def test_forward_and_backward(rows, channels, width, weighted):
    forward_and_backward(rows, channels, width, weighted)


def test_many_rows(monkeypatch):
    from ckgconv.backends.cuda.stem import triton as fused

    monkeypatch.setattr(fused, "MANY", 100)
    forward_and_backward(230, 9, 20, False)


def test_more_programs_backward_than_parts_forward(monkeypatch):
    from ckgconv.backends.cuda.stem import triton as fused

    monkeypatch.setattr(fused, "FEW_PROGRAMS", 2)
    forward_and_backward(230, 9, 20, True)


def forward_and_backward(rows, channels, width, weighted):
    from ckgconv.backends.cuda.stem import triton as fused

    padding = 11
    x = torch.rand(rows, channels, dtype=torch.float64) ** 4 * 20
    weight = torch.randint(0, 4, (rows,)).double() if weighted else None
    shapes = [(rows, width), (channels,), (channels,), (width, channels), (1, width), (1, width)]
    exact = [torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    pulled = torch.randn(rows, width, dtype=torch.float64)
    expected, *moments = naive.stem(x, *exact, weight, 1e-5)
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)

    def padded(values):
        return torch.cat([values, torch.full((padding, *values.shape[1:]), float("nan"), dtype=values.dtype)])

    rough = [value.detach() for value in exact]
    rough = [padded(rough[0]), *rough[1:]]
    rough = [value.to(DEVICE, torch.float32).requires_grad_() for value in rough]
    rough_weight = padded(weight).float().to(DEVICE) if weighted else None
    filled = torch.tensor([rows], device=DEVICE)
    running = [(torch.zeros(n, device=DEVICE), torch.ones(n, device=DEVICE)) for n in (channels, width)]
    x = padded(x).float().to(DEVICE)
    parts = fused.encoding_parts(x, width, rough_weight, filled)
    found, *rough_moments, part = fused.stem(x, parts, *rough, running, 0.1, rough_weight, filled, 1e-5)
    assert relative(found[:rows], expected) < 2e-6
    assert (found[rows:] == 0).all()
    for mine, theirs in zip(rough_moments, moments, strict=True):
        assert relative(mine, theirs.squeeze(1)) < 2e-6
    counts = torch.ones(rows, 1, dtype=torch.float64) if weight is None else weight.unsqueeze(-1)
    values = expected.view(rows, width)
    mean = (counts * values).sum(0) / counts.sum()
    squares = (counts * (values - mean).square()).sum(0)
    assert relative(part, torch.stack([counts.sum().expand_as(mean), mean, squares])) < 2e-6
    for (mean, variance), (total, batch_mean, batch_variance) in zip(running, moments, strict=True):
        assert relative(mean, 0.1 * batch_mean.squeeze(0)) < 2e-6
        assert relative(variance, (0.9 + 0.1 * batch_variance * total / (total - 1)).squeeze(0)) < 2e-6
    gradients = torch.autograd.grad((found[:rows] * pulled.float().to(DEVICE)).sum(), rough)
    assert (gradients[0][rows:] == 0).all()
    assert relative(gradients[0][:rows], wanted[0]) < 2e-5
    for mine, theirs in zip(gradients[1:], wanted[1:], strict=True):
        assert relative(mine, theirs) < 5e-5
