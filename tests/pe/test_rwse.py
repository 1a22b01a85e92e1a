import pytest
import torch
from graphs_for_tests import edge_lists, packed
from hypothesis import given
from hypothesis import strategies as st

from ckgconv.pe import diagonal, pair_rwse, pairs_within, rrwp, rwse, sparse_rwse
from ckgconv.pe.rwse import pair_rwse_at

pytestmark = pytest.mark.usefixtures("double")


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(0, 6))
def test_is_the_diagonal_of_rrwp_in_both_forms(graphs, steps):
    batch = packed(*graphs)
    expected = diagonal(rrwp(batch, steps))
    torch.testing.assert_close(rwse(batch, steps), expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(sparse_rwse(batch, steps), expected, rtol=0, atol=1e-13)


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(1, 4))
def test_pair_form_holds_receiver_then_sender(graphs, steps):
    batch = packed(*graphs)
    pairs, nodes = pair_rwse(batch, steps), rwse(batch, steps)
    assert torch.equal(pairs.values[:, :steps], nodes[pairs.receiver])
    assert torch.equal(pairs.values[:, steps:], nodes[pairs.sender])


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(1, 4))
def test_pairs_are_read_without_the_others(graphs, steps):
    batch = packed(*graphs)
    receiver, sender = pairs_within(batch, steps)
    found, nodes = pair_rwse_at(batch, steps, receiver, sender), rwse(batch, steps)
    torch.testing.assert_close(found, torch.cat([nodes[receiver], nodes[sender]], dim=1), rtol=0, atol=1e-13)


def test_isolated_node_never_returns_and_a_loop_returns_at_once():
    batch = packed((1, torch.zeros(2, 0, dtype=torch.int64)), (1, torch.zeros(2, 1, dtype=torch.int64)))
    assert rwse(batch, 3).tolist() == [[0, 0, 0], [1, 1, 1]]
