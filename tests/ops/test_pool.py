"""Pooling by Triton kernels against its equation."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative
from torch.autograd import gradcheck, gradgradcheck

from ckgconv.ops.pool import naive, ordered

pytestmark = needs_triton


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize(
    ("sizes", "padding", "width"),
    [([5, 0, 90, 1], 0, 20), ([3, 7], 6, 64), ([], 4, 8), ([0], 0, 3), ([700, 0, 1], 2, 5)],
)
def test_forward_and_backward(sizes, padding, width, pooling, monkeypatch):
    from ckgconv.ops.pool import triton as fused

    monkeypatch.setattr(fused, "PART", 40)  # some graphs are summed by several programs
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


def test_values_of_graphs_spread_to_their_nodes():
    from ckgconv.ops.pool import triton as fused

    sizes = torch.tensor([5, 0, 130, 1])
    node_ptr, owner = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)]), torch.arange(4)
    owner = owner.repeat_interleave(sizes)
    values = torch.randn(4, 20, device=DEVICE, requires_grad=True)
    pulled = torch.randn(136, 20)
    found = fused.Spread.apply(values, owner.to(DEVICE), node_ptr.to(DEVICE))
    assert torch.equal(found, values[owner.to(DEVICE)])
    (gradient,) = torch.autograd.grad((found * pulled.to(DEVICE)).sum(), values)
    assert relative(gradient, torch.zeros(4, 20, dtype=torch.float64).index_add(0, owner, pulled.double())) < 1e-6


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_ordered_sums_equal_the_equation_and_have_all_derivatives(pooling):
    node_ptr, owner = torch.tensor([0, 3, 3, 4]), torch.tensor([0, 0, 0, 2, 3, 3])
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    found = ordered.pool(x, owner, node_ptr, pooling)
    torch.testing.assert_close(found, naive.pool(x, owner, node_ptr, pooling))
    assert gradcheck(lambda own: ordered.pool(own, owner, node_ptr, pooling), (x,))
    assert gradgradcheck(lambda own: ordered.pool(own, owner, node_ptr, pooling).sin(), (x,))
