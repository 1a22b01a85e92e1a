"""Covers `ckgconv.nn.linear`."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative
from torch.nn import functional as F

from ckgconv.nn.linear import Linear
from ckgconv.ops import dispatch, linear


@needs_triton
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 3, 5), (700, 12, 20)])
def test_a_linear_map_on_a_gpu_is_torch_s(rows, inputs, outputs, monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: True)
    given = [torch.randn(size, device=DEVICE) for size in ((rows, inputs), (outputs, inputs), (outputs,))]
    results = []
    for operation in (linear.linear, F.linear):
        leaves = [value.clone().requires_grad_() for value in given]
        y = operation(*leaves)
        first = torch.autograd.grad((y**3).sum(), leaves, retain_graph=True)
        again = torch.autograd.grad((y**3).sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(each.square().sum() for each in again), leaves)
        results.append([y, *first, *second])
    for found, expected in zip(*results, strict=True):
        assert relative(found, expected) < 1e-5


def test_the_module_is_torch_s():
    torch.manual_seed(0)
    ours = Linear(4, 3)
    torch.manual_seed(0)
    theirs = torch.nn.Linear(4, 3)
    x = torch.randn(5, 4)
    assert torch.equal(ours(x), theirs(x))
    assert list(ours.state_dict()) == list(theirs.state_dict())
