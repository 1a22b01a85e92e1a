import pytest
import torch

from ckgconv.backends.cpu.distinct import hashed, naive


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "channels", "distinct"), [(500, 8, 60), (301, 7, 300), (1, 3, 1), (40, 1, 5)])
def test_finds_what_sorting_finds(dtype, rows, channels, distinct):
    x = torch.randn(distinct, channels, dtype=dtype)[torch.randint(distinct, (rows,))]
    found, place = hashed.distinct_rows(x)
    expected, _ = naive.distinct_rows(x)
    assert found.shape == expected.shape
    assert torch.equal(found if place is None else found[place], x)


def test_rows_that_all_differ_stay():
    x = torch.randn(50, 4)
    found, place = hashed.distinct_rows(x)
    assert found is x
    assert place is None


def test_different_rows_of_equal_number_are_kept_apart(monkeypatch):
    monkeypatch.setattr(hashed, "row_numbers", lambda x: torch.zeros(x.shape[0], dtype=torch.int64))
    x = torch.randn(50, 4)
    found, place = hashed.distinct_rows(x)
    assert found is x
    assert place is None
