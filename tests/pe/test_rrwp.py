import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from ckgconv import InputError, pack
from ckgconv.pe import diagonal, rrwp, sparse_rrwp

pytestmark = pytest.mark.usefixtures("double")


def matrix_powers(nodes, edge_index, weights, order):
    """The definition, one graph at a time."""
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    for (j, i), weight in zip(edge_index.T.tolist(), weights.tolist(), strict=True):
        adjacency[i, j] += weight
    degree = adjacency.sum(1)
    walk = torch.diag((1 / degree).masked_fill(degree == 0, 0)) @ adjacency
    return torch.stack([torch.linalg.matrix_power(walk, k) for k in range(order + 1)], dim=-1)


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(0, 6), st.integers(0, 2**31))
def test_equals_the_definition_on_any_graphs(graphs, steps, seed):
    total = sum(index.shape[1] for _, index in graphs)
    weights = torch.rand(total, generator=torch.Generator().manual_seed(seed)) + 0.1
    coordinates = rrwp(packed(*graphs, weights=weights), steps)
    expected, used = [], 0
    for nodes, index in graphs:
        part = weights[used : used + index.shape[1]]
        used += index.shape[1]
        expected.append(matrix_powers(nodes, index, part, steps).reshape(nodes**2, -1))
    torch.testing.assert_close(coordinates.values, torch.cat(expected), rtol=0, atol=1e-13)


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(0, 6))
def test_sparse_form_stores_exactly_the_reached_pairs(graphs, steps):
    batch = packed(*graphs)
    dense, sparse = rrwp(batch, steps), sparse_rrwp(batch, steps)
    reached = dense.values.any(-1)
    assert torch.equal(sparse.receiver, dense.receiver[reached])
    assert torch.equal(sparse.sender, dense.sender[reached])
    torch.testing.assert_close(sparse.values, dense.values[reached], rtol=0, atol=1e-13)
    torch.testing.assert_close(diagonal(sparse), diagonal(dense), rtol=0, atol=1e-13)


def test_rows_sum_to_one_and_walks_lead_to_senders():
    coordinates = rrwp(pack(torch.tensor([[1, 2], [0, 1]]), num_nodes=3), 2)
    values = coordinates.values.view(3, 3, 3)
    assert values[0, 1, 1] == 1  # a walk from 0 steps to 1
    assert values[1, 0, 1] == 0  # and not back
    assert values[0, 2, 2] == 1
    assert values[2].sum() == 1  # no way out: the identity alone


def test_self_loop_lets_a_walk_stay():
    values = rrwp(pack(torch.tensor([[0, 1], [0, 0]]), num_nodes=2), 1).values.view(2, 2, 2)
    assert values[0, 0].tolist() == [1, 0.5]


def test_duplicate_edges_weigh_double():
    index = torch.tensor([[1, 1, 2], [0, 0, 0]])
    values = rrwp(pack(index, num_nodes=3), 1).values.view(3, 3, 2)
    torch.testing.assert_close(values[0, :, 1], torch.tensor([0, 2 / 3, 1 / 3]))


def test_counting():
    graphs = pack(random_edges(5, 8, 0), num_nodes=5)
    published, paper = rrwp(graphs, 4), rrwp(graphs, 5, counting="paper")
    assert torch.equal(published.values, paper.values)
    assert diagonal(published).shape == (5, 4)
    assert diagonal(paper, counting="paper").shape == (5, 5)
    assert rrwp(graphs, 1, counting="paper").values.sum() == 5  # 1-RRWP is the identity


def test_refusals():
    graphs = pack(random_edges(3, 2, 0), num_nodes=3)
    with pytest.raises(InputError, match="steps is 0"):
        rrwp(graphs, 0, counting="paper")
    with pytest.raises(InputError, match="counting is 'both'"):
        rrwp(graphs, 3, counting="both")


@pytest.mark.parametrize("encode", [rrwp, sparse_rrwp])
def test_gradient_in_the_weights(encode):
    index = random_edges(5, 9, 1, directed=True)
    weights = torch.rand(9, requires_grad=True)
    assert gradcheck(lambda w: encode(pack(index, num_nodes=6, edge_weight=w), 3).values, (weights,))


def test_default_dtype_and_choice():
    graphs = pack(random_edges(3, 2, 0), num_nodes=3)
    assert rrwp(graphs, 1).values.dtype == torch.float64
    assert rrwp(graphs, 1, dtype=torch.float32).values.dtype == torch.float32
