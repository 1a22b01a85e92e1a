"""Walks both ways; the coordinate's place in a network is tested in `tests/nn/test_propagation.py`."""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st

from ckgconv import CKGConv
from ckgconv.pairs import Encoding
from ckgconv.pe import rrwp, sparse_two_way_rrwp, two_way_rrwp
from ckgconv.pe.two_way import reversed_edges

pytestmark = pytest.mark.usefixtures("double")


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(0, 4))
def test_both_forms_equal_the_walks_of_each_way(lists, steps):
    graphs = packed(*lists)
    dense, sparse = two_way_rrwp(graphs, steps), sparse_two_way_rrwp(graphs, steps)
    against = rrwp(graphs, steps).values
    backwards = replace(graphs, receiver=graphs.sender, sender=graphs.receiver)
    torch.testing.assert_close(dense.values, torch.cat([against, rrwp(backwards, steps).values[:, 1:]], dim=1))
    keys = [each.receiver * graphs.num_nodes + each.sender for each in (dense, sparse)]
    stored = torch.isin(keys[0], keys[1])
    torch.testing.assert_close(dense.values[stored], sparse.values)
    assert (dense.values[~stored] == 0).all()
    assert bool((keys[1].diff() > 0).all())


def test_both_halves_are_equal_where_edges_go_both_ways():
    values = two_way_rrwp(packed((8, random_edges(8, 10, 2))), 3).values
    assert values.shape == (64, 7)
    torch.testing.assert_close(values[:, 1:4], values[:, 4:])


def test_a_layer_reads_it():
    edges = random_edges(8, 10, 2, directed=True)
    encoding = Encoding("two_way_rrwp", 2, 0, "sparse_global")
    assert (encoding.channels, encoding.node_channels) == (5, 4)
    layer, x = CKGConv(3, 4, pe="two_way_rrwp", steps=2, support="sparse_global"), torch.rand(8, 3)
    dense = CKGConv(3, 4, pe="two_way_rrwp", steps=2, support="global")
    dense.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x, edges), dense(x, edges))


def test_reversing_twice_changes_nothing():
    graphs = packed((5, random_edges(5, 6, 1, directed=True)))
    assert torch.equal(reversed_edges(reversed_edges(graphs)).receiver, graphs.receiver)
