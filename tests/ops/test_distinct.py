import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import vmap

from ckgconv.ops import distinct
from ckgconv.ops.convolution import scaled_convolution
from ckgconv.ops.distinct import Support, convolution, distinct_convolution, distinct_rows, hashed, naive, spread_rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "channels", "kinds"), [(500, 8, 60), (301, 7, 200), (9, 3, 1), (40, 1, 5)])
def test_finds_what_sorting_finds(dtype, rows, channels, kinds):
    x = torch.randn(kinds, channels, dtype=dtype)[torch.randint(kinds, (rows,))]
    found = hashed.distinct_rows(x)
    expected, kind = naive.distinct_rows(x)
    assert found.representative.shape == expected.shape[:1]
    assert torch.equal(x[found.representative][found.kind], x)
    assert torch.equal(found.copies, torch.bincount(found.kind))
    assert torch.equal(found.kind[found.order], torch.arange(len(expected)).repeat_interleave(found.copies))
    values = torch.randn(len(expected), 3)
    in_their_order = values[kind[found.representative]]
    assert torch.equal(naive.spread_rows(values, kind), spread_rows(in_their_order, found))


def test_columns_of_several_tensors():
    one, other = torch.randint(3, (200,)), torch.randint(4, (200, 3)).float()
    other[0, 0] = torch.inf
    found = distinct_rows(one, other)
    expected = torch.unique(torch.cat([one.unsqueeze(1).float(), other], 1), dim=0)
    assert len(found.representative) == len(expected)
    assert torch.equal(one[found.representative][found.kind], one)
    assert torch.equal(other[found.representative][found.kind], other)


def test_simple_fractions_have_different_numbers():
    """Their bits differ at the front only: one product per word mapped many of them to the same number."""
    x = 1 / torch.randint(1, 30, (30_000, 12)).float()
    x = torch.cat([x, x])
    assert len(hashed.distinct_rows(x).representative) == len(torch.unique(x, dim=0))


def test_none_where_it_does_not_pay():
    x = torch.randn(50, 4)
    assert hashed.distinct_rows(x) is None
    assert distinct_rows(x) is None
    almost = torch.cat([x, x[:2]])
    assert hashed.distinct_rows(almost) is not None
    assert distinct_rows(almost) is None
    twice = torch.cat([x, x])
    assert distinct_rows(twice) is not None
    assert distinct_rows(twice.requires_grad_()) is None
    seen = []
    vmap(lambda row: seen.append(distinct.distinct_rows(twice.detach())) or row)(x)
    assert seen == [None]


def test_different_rows_of_equal_number_are_kept_apart(monkeypatch):
    monkeypatch.setattr(hashed, "row_numbers", lambda words: torch.zeros(len(words[0]), dtype=torch.int64))
    assert hashed.distinct_rows(torch.randn(50, 4)) is None


def test_gradients_are_sums_over_equal_rows():
    rows = hashed.distinct_rows(torch.tensor([[2.0], [1.0], [2.0], [2.0]]))
    values = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda own: spread_rows(own, rows), (values,))
    assert gradgradcheck(lambda own: spread_rows(own, rows).sin(), (values,))
    (found,) = torch.autograd.grad(spread_rows(values, rows).sum(), values)
    assert sorted(found[:, 0].tolist()) == [1, 3]
    narrow = values.detach().bfloat16().requires_grad_()
    spread_rows(narrow, rows).sum().backward()
    assert sorted(narrow.grad[:, 0].tolist()) == [1, 3]
    torch.testing.assert_close(vmap(lambda own: spread_rows(own, rows))(values[None])[0], spread_rows(values, rows))


@pytest.mark.parametrize("chunk", [1, 48, 10**6])
def test_convolution_of_kinds_is_that_of_all_pairs(chunk, monkeypatch):
    monkeypatch.setattr(convolution, "CHUNK_BYTES", chunk)
    torch.manual_seed(chunk)
    size = torch.tensor([3, 0, 5, 1, 4, 0])
    receiver = torch.arange(6).repeat_interleave(size)
    support = Support(receiver, torch.randint(6, (13,)), size.double(), torch.cat([size.new_zeros(1), size.cumsum(0)]))
    rows = distinct_rows(torch.randint(4, (13,)))
    values = [
        torch.randn(6, 2).double().requires_grad_(),
        torch.randn(len(rows.representative), 2).double().requires_grad_(),
    ]

    def expected(x, psi):
        return scaled_convolution(x, psi[rows.kind], *support[:3])

    def found(x, psi):
        return distinct_convolution(x, psi, support, rows)

    results = [[y := run(*values), *torch.autograd.grad(y.sin().sum(), values)] for run in (found, expected)]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert gradgradcheck(found, values)
    assert torch.equal(vmap(found)(values[0].unsqueeze(0), values[1].unsqueeze(0))[0], expected(*values))
    wide = distinct_convolution(values[0].bfloat16(), values[1].float(), support, rows)
    torch.testing.assert_close(wide.double(), results[0][0], rtol=0.02, atol=0.05)
    assert wide.dtype == torch.float32
