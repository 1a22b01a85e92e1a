import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from ckgconv import pack
from ckgconv.pe import chebyshev, heat, pairs_within
from ckgconv.pe.chebyshev import coefficients, columns, heat_at, normalised_adjacency
from ckgconv.pe.heat import times

pytestmark = pytest.mark.usefixtures("double")


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(1, 10), st.integers(0, 2**31), st.integers(4, 200))
def test_equals_the_heat_of_all_pairs_with_its_gradient(graphs, steps, seed, block):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(sum(index.shape[1] for _, index in graphs), generator=generator) + 0.1
    batch = packed(*graphs, weights=weights.requires_grad_())
    every = heat(batch, steps)
    some = torch.rand(every.receiver.shape, generator=generator) < 0.7
    share = torch.randn(int(some.sum()), steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chebyshev, "BLOCK", block)
        found = heat_at(batch, times(steps), every.receiver[some], every.sender[some])
        (gradient,) = torch.autograd.grad((found + 0 * weights.sum()).mul(share).sum(), batch.edge_weight)
    torch.testing.assert_close(found, every.values[some], rtol=0, atol=1e-12)
    (dense,) = torch.autograd.grad((every.values[some] * share).sum(), batch.edge_weight)
    torch.testing.assert_close(gradient, dense, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("hops", [0, 2])
def test_far_nodes_share_columns_and_do_not_feel_each_other(hops):
    nodes = 400
    path = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    graphs = pack(torch.cat([path, path.flip(0)], dim=1), num_nodes=nodes)
    receiver, sender = pairs_within(graphs, hops)
    matrix, degree = normalised_adjacency(graphs), coefficients(times(4)).shape[0] - 1
    place = columns(matrix, matrix.components("weak"), (receiver, sender), degree)
    assert int(place.max()) + 1 <= degree + hops + 1 < 50
    expected = heat(graphs, 4).values.view(nodes, nodes, 4)[receiver, sender]
    torch.testing.assert_close(heat_at(graphs, times(4), receiver, sender), expected, rtol=0, atol=1e-14)


def test_coefficients_are_all_that_counts():
    for steps in (1, 5, 16):
        terms = coefficients(times(steps))
        torch.testing.assert_close(terms.sum(0), torch.ones(steps), rtol=0, atol=1e-14)
        assert terms[-1].max() > 1e-19


def test_gradient_by_finite_differences():
    edges = random_edges(6, 5, 1)
    weights = torch.rand(edges.shape[1], requires_grad=True)
    place = pairs_within(pack(edges, num_nodes=6), 2)
    assert gradcheck(lambda given: heat_at(pack(edges, edge_weight=given, num_nodes=6), times(3), *place), weights)


def test_no_pairs():
    none = torch.zeros(0, dtype=torch.int64)
    assert heat_at(pack(random_edges(5, 6, 0), num_nodes=5), times(3), none, none).shape == (0, 3)
