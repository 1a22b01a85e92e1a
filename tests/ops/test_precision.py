"""Full precision inside autocast."""

import pytest
import torch

from ckgconv.ops.precision import autocast_converts, exact_products, narrower, wide_dtype, widened, without_autocast


def test_products_keep_their_dtype():
    x = torch.randn(4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        with without_autocast(x):
            assert (x @ x).dtype == torch.float32


def test_sums_are_at_least_float32():
    assert [wide_dtype(dtype) for dtype in (torch.float16, torch.bfloat16)] == [torch.float32] * 2
    assert wide_dtype(torch.float64) == torch.float64
    x = torch.ones(300, dtype=torch.bfloat16)
    assert torch.zeros(1).index_add(0, torch.zeros(300, dtype=torch.int64), widened(x)).item() == 300
    assert narrower(torch.float32, torch.bfloat16) == narrower(torch.bfloat16, torch.float32) == torch.bfloat16
    assert narrower(torch.float16, torch.bfloat16) == torch.float16


def test_autocast_converts_what_is_no_float64():
    x = torch.ones(2, dtype=torch.bfloat16)
    assert not autocast_converts(x, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert autocast_converts(x, torch.float32)
        assert not autocast_converts(x.double(), torch.float32)
        assert not autocast_converts(x, torch.float64)


def test_exact_products_last_as_long_as_their_context():
    before = torch.get_float32_matmul_precision()

    def fail() -> None:
        with exact_products():
            assert torch.get_float32_matmul_precision() == "highest"
            raise ZeroDivisionError

    try:
        torch.set_float32_matmul_precision("high")
        with pytest.raises(ZeroDivisionError):
            fail()
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
