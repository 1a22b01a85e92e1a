import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st

from ckgconv import InputError, pack
from ckgconv.pe import UNREACHABLE, search, spd
from ckgconv.pe.search import spd_at


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 2**31), st.booleans())
def test_equals_the_distances_of_all_pairs(graphs, largest, seed, divided):
    """On directed multigraphs, at any set of pairs, near and far, in one search or in many."""
    every = spd(packed(*graphs), largest)
    some = torch.rand(every.values.shape, generator=torch.Generator().manual_seed(seed)) < 0.7
    with pytest.MonkeyPatch.context() as patch:
        if divided:
            patch.setattr(search, "LARGEST_SEARCH", 8)
        found = spd_at(packed(*graphs), largest, every.receiver[some], every.sender[some])
    assert found.dtype == torch.int64
    assert torch.equal(found, every.values[some])


def test_far_pairs_of_a_long_path():
    path = torch.stack([torch.arange(2999), torch.arange(1, 3000)])
    both = pack(torch.cat([path, path.flip(0)], dim=1), num_nodes=3001)  # the last node is isolated
    receiver, sender = torch.tensor([0, 0, 5, 7, 7]), torch.tensor([4, 2999, 5, 10, 3000])
    assert spd_at(both, 3, receiver, sender).tolist() == [3, 3, 0, 3, UNREACHABLE]
    one_way = pack(path, num_nodes=3000)
    assert spd_at(one_way, 3, torch.tensor([2999, 3]), torch.tensor([0, 9])).tolist() == [3, UNREACHABLE]


def test_edges_of_weight_zero_are_no_edges():
    graphs = pack(torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.zeros(2), num_nodes=2)
    assert spd_at(graphs, 3, torch.tensor([0, 0]), torch.tensor([0, 1])).tolist() == [0, UNREACHABLE]
    with pytest.raises(InputError, match="max_distance is 0"):
        spd_at(graphs, 0, torch.tensor([0]), torch.tensor([0]))


def test_no_pairs():
    graphs = pack(random_edges(5, 6, 0), num_nodes=5)
    none = torch.zeros(0, dtype=torch.int64)
    assert spd_at(graphs, 3, none, none).shape == (0,)
