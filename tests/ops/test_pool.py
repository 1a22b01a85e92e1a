"""Pooling by Triton kernels against its equation."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative

from ckgconv.ops.pool import naive

pytestmark = needs_triton


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize(
    ("sizes", "padding", "width"), [([5, 0, 90, 1], 0, 20), ([3, 7], 6, 64), ([], 4, 8), ([0], 0, 3)]
)
def test_forward_and_backward(sizes, padding, width, pooling):
    from ckgconv.ops.pool import triton as fused

    nodes = sum(sizes)
    node_ptr = torch.tensor([0, *sizes]).cumsum(0)
    owner = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes, dtype=torch.int64))
    owner = torch.cat([owner, torch.full((padding,), len(sizes))]).unsqueeze(-1).expand(-1, 2).contiguous()[:, 0]
    exact = torch.randn(nodes + padding, width, dtype=torch.float64, requires_grad=True)
    pulled = torch.randn(len(sizes), width, dtype=torch.float64)
    expected = naive.pool(exact, owner, node_ptr, pooling)
    (wanted,) = torch.autograd.grad((expected * pulled).sum(), exact)
    rough = exact.detach().float().to(DEVICE).requires_grad_()
    found = fused.pool(rough, owner.to(DEVICE), node_ptr.to(DEVICE), pooling)
    assert relative(found, expected) < 1e-6
    (gradient,) = torch.autograd.grad((found * pulled.float().to(DEVICE)).sum(), rough)
    assert relative(gradient, wanted) < 1e-6
    assert (gradient[nodes:] == 0).all()
