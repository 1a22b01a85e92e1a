"""The pyramid head by Triton kernels against its equation in float64: output and every gradient."""

from itertools import pairwise

import pytest
import torch
from on_device import DEVICE, needs_triton, relative

from ckgconv.backends.cuda.head import naive

pytestmark = needs_triton


@pytest.mark.parametrize(("rows", "widths"), [(32, (64, 32, 16, 1)), (37, (20, 10, 5, 3)), (1, (16, 8, 4, 19))])
def test_forward_and_backward(rows, widths):
    from ckgconv.backends.cuda.head import triton as fused

    x = torch.randn(rows, widths[0], dtype=torch.float64)
    shapes = [shape for narrow, wide in pairwise(widths) for shape in ((wide, narrow), (wide,))]
    exact = [value.requires_grad_() for value in (x, *(torch.randn(shape, dtype=torch.float64) for shape in shapes))]
    pulled = torch.randn(rows, widths[-1], dtype=torch.float64)
    expected = naive.pyramid(exact[0], exact[1:])
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)
    rough = [value.detach().to(DEVICE, torch.float32).requires_grad_() for value in exact]
    found = fused.pyramid(rough[0], rough[1:])
    assert relative(found, expected) < 2e-6
    gradients = torch.autograd.grad((found * pulled.float().to(DEVICE)).sum(), rough)
    for mine, theirs in zip(gradients, wanted, strict=True):
        assert relative(mine, theirs) < 5e-6
