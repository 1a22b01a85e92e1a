import subprocess
import sys

import networkx
import numpy as np
import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from ckgconv import InputError, pack
from ckgconv.pe import UNREACHABLE, pairs_within, rd, spd

pytestmark = pytest.mark.usefixtures("double")


def directed(nodes, index):
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(index.flip(0).T.tolist())  # from receiver to sender, as walks lead
    return graph


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(1, 9))
def test_hop_distance_equals_networkx(graphs, largest):
    values, used = spd(packed(*graphs), largest).values, 0
    for nodes, index in graphs:
        lengths = dict(networkx.all_pairs_shortest_path_length(directed(nodes, index)))
        expected = [min(lengths[i].get(j, np.inf), largest) for i in range(nodes) for j in range(nodes)]
        reachable = [j in lengths[i] for i in range(nodes) for j in range(nodes)]
        expected = [value if reach else UNREACHABLE for value, reach in zip(expected, reachable, strict=True)]
        assert values[used : used + nodes**2].tolist() == expected
        used += nodes**2


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(0, 4), st.sampled_from([0, 512]))
def test_pairs_within_are_those_of_small_distance(graphs, hops, largest_padded):
    """By sparse and by padded matrices."""
    batch = packed(*graphs)
    distances = spd(batch, 20)
    near = (distances.values <= hops) & (distances.values != UNREACHABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ckgconv.pe.distances.LARGEST_PADDED", largest_padded)
        receiver, sender = pairs_within(batch, hops)
    assert torch.equal(receiver, distances.receiver[near])
    assert torch.equal(sender, distances.sender[near])


@pytest.mark.parametrize("hops", [1, 2])
def test_no_pair_across_an_edge_of_weight_zero(hops):
    edges, weight = torch.tensor([[0, 1, 1, 1, 2], [1, 0, 0, 2, 1]]), torch.tensor([1.0, 1.0, 2.0, 0.0, 0.0])
    receiver, sender = pairs_within(pack(edges, edge_weight=weight, num_nodes=3), hops)
    assert receiver.tolist() == [0, 0, 1, 1, 2]
    assert sender.tolist() == [0, 1, 0, 1, 2]


@given(edge_lists(), st.integers(0, 2**31))
def test_resistance_equals_networkx_on_each_component(graph, seed):
    nodes, index = graph
    weights = torch.rand(index.shape[1], generator=torch.Generator().manual_seed(seed)) + 0.1
    # Both directions, so that (A + Aᵀ)/2 has the weights below; a filler graph tests the padding.
    both = torch.cat([index, index.flip(0)], dim=1)
    filler = random_edges(12, 30, 0)
    all_weights = torch.cat([weights, weights, torch.ones(filler.shape[1])])
    values = rd(packed((nodes, both), (12, filler), weights=all_weights)).values[: nodes**2].view(nodes, nodes)
    conductance = networkx.Graph()
    conductance.add_nodes_from(range(nodes))
    for (i, j), weight in zip(index.T.tolist(), weights.tolist(), strict=True):
        if i != j:
            before = conductance.get_edge_data(i, j, {"weight": 0.0})["weight"]
            conductance.add_edge(i, j, weight=before + weight)
    for i in range(nodes):
        component = networkx.node_connected_component(conductance, i)
        part = conductance.subgraph(component)
        for j in range(nodes):
            if j not in component:
                assert values[i, j] == torch.inf
            elif i == j:
                assert values[i, j] == 0
            else:
                exact = networkx.resistance_distance(part, i, j, weight="weight", invert_weight=False)
                assert abs(values[i, j] - exact) < 1e-8


def test_resistance_of_a_path_is_its_length_to_the_last_digits():
    nodes = 60
    path = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    values = rd(pack(torch.cat([path, path.flip(0)], dim=1), num_nodes=nodes)).values.view(nodes, nodes)
    steps = torch.arange(nodes).double()
    torch.testing.assert_close(values, (steps - steps.unsqueeze(-1)).abs(), rtol=0, atol=1e-9)
    assert torch.equal(values, values.mT)


def test_zero_weight_is_no_edge():
    index, weight = torch.tensor([[0, 1], [1, 0]]), torch.zeros(2)
    graphs = pack(index, num_nodes=2, edge_weight=weight)
    assert spd(graphs, 3).values.tolist() == [0, UNREACHABLE, UNREACHABLE, 0]
    assert rd(graphs).values.flatten().tolist() == [0, torch.inf, torch.inf, 0]


def test_gradient_of_resistance_in_the_weights():
    index = torch.tensor([[0, 1, 2, 0, 4], [1, 2, 3, 3, 4]])
    weights = torch.rand(5, requires_grad=True)

    def finite(weight):
        values = rd(pack(index, num_nodes=5, edge_weight=weight)).values
        return values[torch.isfinite(values)]

    assert gradcheck(finite, (weights,))


def test_cap_costs_no_more_than_the_cap_and_keeps_far_apart_from_unreachable():
    nodes = 800
    path = torch.stack([torch.arange(nodes - 2), torch.arange(1, nodes - 1)])  # the last node is isolated
    values = spd(pack(torch.cat([path, path.flip(0)], dim=1), num_nodes=nodes), 3).values.view(nodes, nodes)
    assert values[0, :5].tolist() == [0, 1, 2, 3, 3]
    assert values[0, nodes - 1] == UNREACHABLE


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_resistance_keeps_its_digits_on_any_scale_of_weights(scale):
    index, weight = torch.tensor([[0, 1], [1, 2]]), 2 * scale * torch.tensor([1e3, 1e-3])
    values = rd(pack(index, num_nodes=3, edge_weight=weight)).values.view(3, 3)
    torch.testing.assert_close(values[0], torch.tensor([0, 1e-3, 1e3 + 1e-3]) / scale, rtol=1e-8, atol=1e-9 / scale)
    with pytest.raises(InputError, match="spans a factor of"):
        rd(pack(index, num_nodes=3, edge_weight=torch.tensor([1.0, 1e-12])))


def test_refuses_no_distance():
    with pytest.raises(InputError, match="max_distance is 0"):
        spd(pack(random_edges(3, 2, 0), num_nodes=3), 0)


def test_resistances_do_not_depend_on_the_number_of_threads():
    """LU factors of batches do, without an error (pytorch/pytorch#141358); in a process of its own, which it spoils."""
    code = """
import torch
from ckgconv.graphs import pack
from ckgconv.pe import rd
torch.set_num_threads(2)
nodes, graphs = 160, 6
one = torch.arange(nodes - 1)
path = torch.stack([torch.cat([one, one + 1]), torch.cat([one + 1, one])])
edges = torch.cat([path + nodes * graph for graph in range(graphs)], dim=1)
batch = torch.arange(graphs).repeat_interleave(nodes)
place = torch.arange(nodes, dtype=torch.float64)
found = rd(pack(edges, batch), torch.float64).values.view(graphs, nodes, nodes)
assert torch.allclose(found, (place[:, None] - place).abs().expand_as(found), atol=1e-8)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_graphs_without_nodes_have_no_pairs(count, hops):
    none = torch.zeros(0, dtype=torch.int64)
    receiver, sender = pairs_within(pack(none.expand(2, 0), none, num_graphs=count), hops)
    assert receiver.shape == sender.shape == (0,)
