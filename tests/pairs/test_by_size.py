"""A batch of small and large graphs has the coordinates of each graph by itself, without padding all to the largest."""

import pytest
import torch
from graphs_for_tests import packed, random_edges

from ckgconv.pairs import Encoding, by_size

SIZES = [3, 40, 1, 5, 33, 2, 9, 4]


@pytest.fixture
def mixed():
    return packed(*[(size, random_edges(size, 2 * size, seed)) for seed, size in enumerate(SIZES)])


@pytest.fixture
def divided(monkeypatch):
    monkeypatch.setattr(by_size, "FEW_CELLS", 0)


@pytest.mark.parametrize("name", ["rrwp", "spd", "rd", "pair_rwse", "heat"])
@pytest.mark.parametrize("support", ["global", 2])
def test_groups_change_nothing(mixed, name, support, monkeypatch):
    encoding = Encoding(name, 4, 4, support)
    whole = encoding.coordinates(mixed, torch.float64)
    nodes = encoding.node_part(mixed, whole, torch.float64)
    monkeypatch.setattr(by_size, "FEW_CELLS", 0)
    assert len(by_size.groups(mixed)) == 6
    divided = encoding.coordinates(mixed, torch.float64)
    assert torch.equal(divided.receiver, whole.receiver)
    assert torch.equal(divided.sender, whole.sender)
    torch.testing.assert_close(divided.values, whole.values)
    torch.testing.assert_close(encoding.node_part(mixed, divided, torch.float64), nodes)


def test_similar_graphs_stay_together(divided):
    assert by_size.groups(packed(*[(size, random_edges(size, 8, size)) for size in (5, 6, 7)])) is None


def test_padding_is_bounded(mixed, divided):
    parts = by_size.groups(mixed)
    pairs = int(mixed.sizes.square().sum())
    padded = sum(part.graphs.num_graphs * part.graphs.largest**2 for part in parts)
    assert padded <= by_size.WASTE * pairs < mixed.num_graphs * mixed.largest**2
    assert by_size.padded_cells(mixed.num_graphs, mixed.largest, pairs) == by_size.WASTE * pairs
    assert sum(part.graphs.num_edges for part in parts) == mixed.num_edges


def test_gradients_reach_the_weights(mixed, divided):
    weight = torch.rand(mixed.num_edges, dtype=torch.float64, requires_grad=True)
    graphs = type(mixed)(mixed.receiver, mixed.sender, weight, mixed.node_graph, mixed.node_ptr)
    Encoding("rrwp", 3, 3, "global").coordinates(graphs, torch.float64).values.square().sum().backward()
    assert weight.grad.abs().sum() > 0
