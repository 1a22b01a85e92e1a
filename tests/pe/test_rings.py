"""Sizes of rings against counts of cycles, and on graphs where they are known."""

import pytest
import torch
from graphs_for_tests import edge_lists, packed
from hypothesis import given, settings
from hypothesis import strategies as st

from ckgconv import pack
from ckgconv.pairs import Encoding
from ckgconv.pe.cycles import LENGTHS, cycle_counts
from ckgconv.pe.rings import LONGEST, node_walks_and_rings, ring_sizes, walks_and_rings
from ckgconv.pe.rrwp import rrwp

pytestmark = pytest.mark.usefixtures("double")


def both_ways(edges):
    index = torch.tensor(edges).T
    return torch.cat([index, index.flip(0)], dim=1)


def ring(nodes):
    return [(node, (node + 1) % nodes) for node in range(nodes)]


@given(st.lists(edge_lists(max_nodes=8), min_size=1, max_size=3))
@settings(max_examples=25)
def test_sizes_are_the_first_and_the_last_length_that_is_counted(graphs):
    graphs = packed(*graphs)
    there = cycle_counts(graphs) > 0
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)
    smallest = lengths.where(there, torch.inf).min(1).values
    largest = lengths.where(there, 0.0).max(1).values
    assert torch.equal(ring_sizes(graphs), torch.stack([smallest.where(largest > 0, 0.0), largest], dim=1))


@pytest.mark.parametrize("nodes", [3, LONGEST, LONGEST + 1])
def test_one_ring(nodes):
    sizes = ring_sizes(pack(both_ways(ring(nodes)), num_nodes=nodes))
    assert (sizes == (nodes if nodes <= LONGEST else 0)).all()


def test_naphthalene_has_a_rim_of_ten():
    edges = [*ring(6), (5, 6), (6, 7), (7, 8), (8, 9), (9, 4)]
    sizes = ring_sizes(pack(both_ways(edges), num_nodes=10)).view(10, 10, 2)
    assert sizes[0, 3].tolist() == [6, 10]
    assert sizes[0, 7].tolist() == [10, 10]  # no ring of six has both
    assert sizes[4, 4].tolist() == [6, 10]


def test_coordinates_and_node_part():
    graphs = packed((4, both_ways(ring(4))), (5, both_ways([*ring(3), (2, 3), (3, 4)])))
    values = walks_and_rings(graphs, 3).values
    order = torch.tensor([4.0] * 16 + [5.0] * 25).unsqueeze(-1)
    assert torch.equal(values[:, :4], rrwp(graphs, 3).values)
    torch.testing.assert_close(values[:, 4:], ring_sizes(graphs) / order)
    node = node_walks_and_rings(graphs, 3)
    on_diagonal = [*(5 * i for i in range(4)), *(16 + 6 * i for i in range(5))]
    torch.testing.assert_close(node, torch.cat([values[on_diagonal, :4], ring_sizes(graphs)[on_diagonal]], dim=1))
    encoding = Encoding("rrwp_rings", 3, 20, "global")
    assert encoding.channels == encoding.node_channels == 6
    assert torch.equal(encoding.node_part(graphs, encoding.coordinates(graphs, torch.float64), torch.float64), node)
