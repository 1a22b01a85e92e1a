"""Softmax over the support by Triton kernels against its equation."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative

from ckgconv.ops.launch import pitch
from ckgconv.ops.softmax import naive

pytestmark = needs_triton


@pytest.mark.parametrize(
    ("sizes", "padding", "layers", "width"),
    [([5, 0, 70, 1], 0, 2, 20), ([3, 33], 6, 3, 64), ([32, 64], 3, 1, 54), ([1], 0, 2, 3), ([], 2, 1, 8)],
)
@pytest.mark.parametrize("shift", [0.0, 500.0])
def test_forward_and_backward(sizes, padding, layers, width, shift):
    from ckgconv.ops.softmax import triton as fused

    rowptr = torch.tensor([0, *sizes]).cumsum(0)
    pairs, counts = sum(sizes), torch.tensor(sizes, dtype=torch.int64)
    receiver = torch.repeat_interleave(torch.arange(len(sizes)), counts)
    # A support may be larger than what is stored of it.
    size = (counts + 1).double()
    exact = (3 * torch.randn(layers, pairs, width, dtype=torch.float64) + shift).float().double().requires_grad_()
    expected = torch.stack([naive.summing_softmax(each, receiver, size) for each in exact])
    pulled = torch.randn(layers, pairs, width, dtype=torch.float64)
    (wanted,) = torch.autograd.grad((expected * pulled).sum(), exact)
    rows = torch.full((layers, pairs + padding, pitch(width)), torch.nan, device=DEVICE)
    rows[:, :pairs, :width] = exact.detach().float()
    rough = rows[..., :width].requires_grad_()
    # The last node may own rows of padding.
    held, filled = rowptr.clone(), torch.tensor([pairs])
    held[-1] += padding if sizes else 0
    found = fused.summing_softmax(rough, held.to(DEVICE), size.to(DEVICE), filled.to(DEVICE) if padding else None)
    assert relative(found[:, :pairs], expected) < 1e-6
    assert found._base.shape[2] == pitch(width)
    assert (found._base[:, :pairs, width:] == 0).all()
    (gradient,) = torch.autograd.grad(
        found, rough, torch.nn.functional.pad(pulled, (0, 0, 0, padding)).float().to(DEVICE)
    )
    assert relative(gradient[:, :pairs], wanted) < 1e-5
