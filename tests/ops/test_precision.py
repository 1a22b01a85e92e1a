"""Full precision inside autocast."""

import torch

from ckgconv.ops.precision import without_autocast


def test_products_keep_their_dtype():
    x = torch.randn(4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        with without_autocast(x):
            assert (x @ x).dtype == torch.float32
