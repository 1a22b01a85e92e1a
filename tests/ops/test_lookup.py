"""Rows of a table by Triton kernels against torch's embedding."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative
from torch.nn import functional as F

from ckgconv.ops.lookup import current_stream

pytestmark = needs_triton


@pytest.mark.parametrize(
    ("rows", "entries", "width"), [(700, 21, 64), (130, 4, 54), (33, 119, 20), (1, 3, 8), (0, 5, 16)]
)
def test_rows_and_the_gradient_of_the_table(rows, entries, width):
    from ckgconv.ops.lookup import triton as fused

    index = torch.randint(0, entries, (rows,))
    exact = torch.randn(entries, width, dtype=torch.float64, requires_grad=True)
    pulled = torch.randn(rows, width, dtype=torch.float64)
    expected = F.embedding(index, exact)
    (wanted,) = torch.autograd.grad((expected * pulled).sum(), exact)
    rough = exact.detach().float().to(DEVICE).requires_grad_()
    found = fused.lookup(index.to(DEVICE), rough, current_stream)
    assert torch.equal(found.cpu(), expected.float())
    (gradient,) = torch.autograd.grad((found * pulled.float().to(DEVICE)).sum(), rough)
    assert relative(gradient, wanted) < 1e-6


@pytest.mark.parametrize(("count", "rows", "entries", "width"), [(300, 900, 4, 64), (40, 41, 5, 20), (0, 7, 3, 16)])
def test_rows_at_their_targets(count, rows, entries, width):
    from ckgconv.ops.lookup import lookup_onto
    from ckgconv.ops.lookup import triton as fused

    index = torch.randint(0, entries, (count,))
    target = torch.randperm(rows)[:count]
    target[: count // 4] = target[count // 4 : 2 * (count // 4)]  # two of them share a row
    exact = torch.randn(entries, width, dtype=torch.float64, requires_grad=True)
    pulled = torch.randn(rows, width, dtype=torch.float64)
    expected = lookup_onto(index, target, exact, rows)
    (wanted,) = torch.autograd.grad((expected * pulled).sum(), exact)
    rough = exact.detach().float().to(DEVICE).requires_grad_()
    found = fused.lookup_onto(index.to(DEVICE), target.to(DEVICE), rough, rows, current_stream)
    assert relative(found, expected) < 1e-7
    (gradient,) = torch.autograd.grad((found * pulled.float().to(DEVICE)).sum(), rough)
    assert relative(gradient, wanted) < 1e-6


def test_repeatable_sums_are_the_same_bits(monkeypatch):
    """A captured step does not request them, an eager one does: both train the same network."""
    from ckgconv.ops.lookup import lookup_onto

    monkeypatch.setattr("ckgconv.ops.dispatch.uses_triton", lambda x: True)
    index, target = torch.randint(0, 6, (300,), device=DEVICE), torch.randperm(400, device=DEVICE)[:300]
    table = torch.randn(6, 20, device=DEVICE, requires_grad=True)
    pulled = torch.randn(400, 20, device=DEVICE)
    results = []
    for repeatable in (False, True):
        monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda repeatable=repeatable: repeatable)
        found = lookup_onto(index, target, table, 400)
        results.append((found.detach(), *torch.autograd.grad((found * pulled).sum(), table)))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_columns_of_several_attributes():
    from ckgconv.ops.lookup import triton as fused

    columns = torch.randint(0, 7, (90, 3)).to(DEVICE).unbind(1)
    tables = [torch.randn(7, 16, device=DEVICE, requires_grad=True) for _ in columns]
    found = sum(fused.lookup(column, table, current_stream) for column, table in zip(columns, tables, strict=True))
    for column, gradient in zip(columns, torch.autograd.grad(found.sum(), tables), strict=True):
        assert torch.equal(gradient[:, 0].cpu(), torch.bincount(column.cpu(), minlength=7).float())


def test_a_table_of_many_rows_has_few_parts(monkeypatch):
    from ckgconv.ops.lookup import triton as fused

    monkeypatch.setattr(fused, "PARTS_VALUES", 2**12)
    index = torch.randint(0, 150, (500,), device=DEVICE)
    table = torch.randn(150, 16, device=DEVICE, requires_grad=True)
    (gradient,) = torch.autograd.grad(fused.lookup(index, table, current_stream).sum(), table)
    assert torch.equal(gradient[:, 0].cpu(), torch.bincount(index.cpu(), minlength=150).float())
