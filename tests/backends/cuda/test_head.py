"""The pyramid head by Triton kernels against `nn.head` in float64: output and every gradient."""

import copy

import pytest
import torch
from on_device import DEVICE, needs_triton, relative

from ckgconv.backends import accelerate
from ckgconv.nn.head import PyramidHead, ReLUPyramidHead

pytestmark = needs_triton


@pytest.mark.parametrize(
    ("kind", "rows", "width", "outputs"),
    [(PyramidHead, 32, 64, 1), (PyramidHead, 37, 20, 3), (PyramidHead, 1, 16, 19), (ReLUPyramidHead, 37, 20, 3)],
)
def test_forward_and_backward(kind, rows, width, outputs, monkeypatch):
    from ckgconv.backends.cuda.head import launch

    head = kind(width, outputs).double()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: True)
    rough = accelerate(copy.deepcopy(head).float(), DEVICE)
    assert type(rough).__name__ == f"Fused{kind.__name__}"
    x = torch.randn(rows, width, dtype=torch.float64, requires_grad=True)
    rough_x = x.detach().to(DEVICE, torch.float32).requires_grad_()
    assert launch.applies(rough_x, list(rough.parameters()))
    expected, found = head(x), rough(rough_x)
    pulled = torch.randn(rows, outputs, dtype=torch.float64)
    wanted = torch.autograd.grad((expected * pulled).sum(), [x, *head.parameters()])
    assert relative(found, expected) < 2e-6
    gradients = torch.autograd.grad((found * pulled.float().to(DEVICE)).sum(), [rough_x, *rough.parameters()])
    for mine, theirs in zip(gradients, wanted, strict=True):
        assert relative(mine, theirs) < 5e-6
