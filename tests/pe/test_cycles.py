"""Cycles through nodes and pairs: against all orders of all sets of nodes, and in molecules."""

from dataclasses import replace
from itertools import combinations, permutations

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import edge_lists, packed
from hypothesis import given, settings
from hypothesis import strategies as st

from ckgconv import InputError, pack
from ckgconv.nn.models import build_model
from ckgconv.pairs import Encoding
from ckgconv.pe import COORDINATES, cycles, rrwp, walks_and_cycles
from ckgconv.pe.cycles import cycle_counts, cycles_of, node_walks_and_cycles

pytestmark = pytest.mark.usefixtures("double")


def ring(*nodes):
    """Edges of a cycle along the given nodes, one direction each."""
    return [(nodes[place - 1], node) for place, node in enumerate(nodes)]


def both_ways(*edges):
    index = torch.tensor([edge for part in edges for edge in part]).T
    return torch.cat([index, index.flip(0)], dim=1)


def by_definition(nodes, index):
    """[n, n, 6] by trying every order of every set of nodes."""
    joined = {frozenset(edge) for edge in index.T.tolist() if edge[0] != edge[1]}
    counts = torch.zeros(nodes, nodes, 6)
    for length in range(3, 9):
        for chosen in combinations(range(nodes), length):
            for order in permutations(chosen[1:]):
                if order[0] > order[-1]:
                    continue  # the same cycle in the other direction
                cycle = (chosen[0], *order)
                if all(frozenset((cycle[k - 1], node)) in joined for k, node in enumerate(cycle)):
                    counts[torch.tensor(cycle)[:, None], torch.tensor(cycle)[None, :], length - 3] += 1
    return counts


@given(st.lists(edge_lists(max_nodes=7), min_size=1, max_size=3))
@settings(max_examples=25)
def test_equals_the_definition_on_any_graphs(graphs):
    """With self loops, parallel edges, one-way edges and isolated nodes as they fall."""
    found = cycle_counts(packed(*graphs))
    wanted = torch.cat([by_definition(nodes, index).view(nodes**2, 6) for nodes, index in graphs])
    assert torch.equal(found, wanted)


def test_the_longest_cycles_are_found_and_no_longer_ones():
    for length in (3, 7, 8, 9):
        counts = cycle_counts(pack(both_ways(ring(*range(length))), num_nodes=length)).view(length, length, 6)
        wanted = torch.zeros(6)
        if length <= 8:
            wanted[length - 3] = 1
        assert (counts == wanted).all()


def test_naphthalene_has_two_rings_of_six():
    """Atoms 0 … 5 are one ring, 4, 5, 6, … 9 the other; the outer ring of ten is too long."""
    edges = both_ways(ring(0, 1, 2, 3, 4, 5), [(5, 6), (6, 7), (7, 8), (8, 9), (9, 4)])
    counts = cycle_counts(pack(edges, num_nodes=10)).view(10, 10, 6)[..., 3]
    assert counts.diagonal().tolist() == [1, 1, 1, 1, 2, 2, 1, 1, 1, 1]
    assert (counts[0, 3], counts[0, 7], counts[4, 5]) == (1, 0, 2)
    assert cycle_counts(pack(edges, num_nodes=10)).view(10, 10, 6)[..., :3].sum() == 0


def test_coordinates_and_node_part():
    graphs = packed((4, both_ways(ring(0, 1, 2, 3))), (5, both_ways(ring(0, 1, 2), [(2, 3), (3, 4)])))
    values = walks_and_cycles(graphs, 3).values
    counts = cycle_counts(graphs)
    order = torch.tensor([4.0] * 16 + [5.0] * 25).unsqueeze(-1)
    assert torch.equal(values[:, :4], rrwp(graphs, 3).values)
    torch.testing.assert_close(values[:, 4:], torch.log(1 + counts) / order)
    node = node_walks_and_cycles(graphs, 3)
    on_diagonal = [*(5 * i for i in range(4)), *(16 + 6 * i for i in range(5))]
    torch.testing.assert_close(node, torch.cat([values[on_diagonal, :4], torch.log(1 + counts[on_diagonal])], dim=1))
    encoding = Encoding("rrwp_cycles", 3, 20, "global")
    assert encoding.channels == encoding.node_channels == 10
    assert torch.equal(encoding.node_part(graphs, encoding.coordinates(graphs, torch.float64), torch.float64), node)


def test_an_edge_of_weight_zero_is_none():
    edges = both_ways(ring(0, 1, 2))
    weights = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    assert cycle_counts(pack(edges, edge_weight=weights, num_nodes=3)).sum() == 0
    weights = torch.full((6,), 2.0, requires_grad=True)
    walks_and_cycles(pack(edges, edge_weight=weights, num_nodes=3), 2).values.square().sum().backward()
    assert torch.isfinite(weights.grad).all()


def test_graphs_without_nodes_or_edges():
    empty = torch.zeros(2, 0, dtype=torch.int64)
    graphs = pack(empty, torch.tensor([1, 1, 3]), num_nodes=3, num_graphs=5)
    assert torch.equal(cycle_counts(graphs), torch.zeros(5, 6))
    assert node_walks_and_cycles(graphs, 2).shape == (3, 9)


def test_cycles_of_a_graph_are_found_once():
    before = cycles_of.cache_info().misses
    graphs = pack(both_ways(ring(*range(6)), [(0, 2), (1, 4)]), num_nodes=6)
    first = cycle_counts(graphs)
    assert torch.equal(cycle_counts(graphs), first)
    assert cycles_of.cache_info().misses <= before + 1


def test_dense_graphs_and_sparse_supports_are_refused(monkeypatch):
    monkeypatch.setattr(cycles, "MOST_CYCLES", 50)
    index = torch.tensor(list(combinations(range(9), 2))).T
    with pytest.raises(InputError, match=r"more than 50 cycles of at most 8 nodes.* choose encoding 'rrwp'"):
        cycle_counts(pack(index, num_nodes=9))
    cycles_of.cache_clear()
    with pytest.raises(InputError, match="sparse"):
        build_model(replace(small_recipe("zinc", "sparse_global", "rrwp"), encoding="rrwp_cycles"))
    assert not COORDINATES["rrwp_cycles"].walk_powers
