"""Sums over partial results in one launch, in a fixed order."""

import pytest
import torch
from on_device import DEVICE, needs_triton

pytestmark = needs_triton


@pytest.mark.parametrize(("parts", "shape"), [(1, (5,)), (70, (3, 7)), (128, (65,)), (3, (0,))])
def test_sums(parts, shape):
    from ckgconv.ops.reductions import summed

    values = torch.randn(parts, *shape, device=DEVICE)
    torch.testing.assert_close(summed(values), values.sum(0), rtol=1e-5, atol=1e-5)


def test_parts_may_lie_apart():
    from ckgconv.ops.reductions import write_sums

    values = torch.randn(6, 40, device=DEVICE)
    sums = torch.empty(10, device=DEVICE)
    write_sums(values[:, 5:15], sums)
    torch.testing.assert_close(sums, values[:, 5:15].sum(0))
