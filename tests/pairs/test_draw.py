"""Draws without replacement: distinct, complete where a row is short, and uniform."""

import torch

from ckgconv.pairs.draw import draw_entries


def test_entries_are_distinct_ascending_and_at_most_as_many_as_asked():
    torch.manual_seed(0)
    sizes = torch.tensor([0, 3, 5, 40, 1, 7, 1000])
    row, offset = draw_entries(sizes, 5)
    assert torch.bincount(row, minlength=7).tolist() == [0, 3, 5, 5, 1, 5, 5]
    assert (offset < sizes[row]).all()
    key = row * 1000 + offset
    assert (key.diff() > 0).all()


def test_every_set_is_equally_likely():
    torch.manual_seed(0)
    _, offset = draw_entries(torch.full((60_000,), 5), 3)
    sets = (2 ** offset.view(-1, 3)).sum(1)
    numbers, counts = torch.unique(sets, return_counts=True)
    assert len(numbers) == 10
    assert (counts - 6000).abs().max() < 5 * 6000**0.5


def test_no_rows_and_rows_that_are_all_short():
    none = torch.zeros(0, dtype=torch.int64)
    assert [len(each) for each in draw_entries(none, 4)] == [0, 0]
    row, offset = draw_entries(torch.tensor([2, 1]), 100)
    assert row.tolist() == [0, 0, 1]
    assert offset.tolist() == [0, 1, 0]
