"""Random walks by Triton kernels against batched products in float64, on graphs of different sizes."""

import pytest
import torch
from on_device import DEVICE, needs_triton

from ckgconv.backends.cuda.walk import naive

pytestmark = needs_triton


@pytest.mark.parametrize("sizes", [[5, 9, 0, 1], [37, 12], [70, 3], [140, 66]], ids=["16", "64", "128", "tiled"])
def test_all_powers_at_every_pair(sizes):
    from ckgconv.backends.cuda.walk import triton as fused

    steps, padding, largest = 5, 7, max(sizes)
    matrix = torch.zeros(len(sizes), largest, largest, dtype=torch.float64)
    for graph, size in enumerate(sizes):
        edges = (torch.rand(size, size) < 0.3).double()
        matrix[graph, :size, :size] = edges / edges.sum(1, keepdim=True).clamp(min=1)
    counts = torch.tensor(sizes)
    starts = (counts**2).cumsum(0) - counts**2
    rows = int((counts**2).sum()) + padding
    expected = naive.walk_coordinates(matrix, counts, starts, steps, rows)
    found = fused.walk_coordinates(matrix.float().to(DEVICE), counts.to(DEVICE), starts.to(DEVICE), steps, rows)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-5, atol=1e-6)
    assert (found[-padding:] == 0).all()
