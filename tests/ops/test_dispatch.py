"""Where Triton kernels apply: 32-bit offsets, and the shared memory of a GPU."""

import pytest
import torch

from ckgconv.ops import dispatch, launch

HOPPER, AMPERE, CONSUMER = 232_448, 166_912, 101_376


@pytest.fixture
def chip(monkeypatch):
    """A GPU with that much shared memory, and a precision of float32 products."""
    before = torch.get_float32_matmul_precision()

    def choose(size, precision):
        monkeypatch.setattr(dispatch, "shared_memory", lambda x: size)
        torch.set_float32_matmul_precision(precision)

    yield choose
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(
    ("size", "precision", "widest"),
    [
        (HOPPER, "highest", 128),
        (HOPPER, "high", 128),
        (AMPERE, "highest", 64),
        (AMPERE, "high", 128),
        (CONSUMER, "highest", 64),
        (CONSUMER, "high", 64),
    ],
)
def test_width_is_limited_by_shared_memory(chip, size, precision, widest):
    chip(size, precision)
    x = torch.zeros(1)
    assert dispatch.fits(x, 1000, widest)
    assert not dispatch.fits(x, 1000, widest + 1)


def test_rows_are_limited_by_their_addresses(chip):
    chip(HOPPER, "highest")
    x = torch.zeros(1)
    assert dispatch.fits(x, 2**31 // 56 - 1, 54)
    assert not dispatch.fits(x, 2**31 // 54 - 1, 54)


def test_rows_lie_16_bytes_apart():
    assert [launch.pitch(channels) for channels in (1, 8, 54, 56, 64)] == [8, 8, 56, 56, 64]
