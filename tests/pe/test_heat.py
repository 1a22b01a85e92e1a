"""The heat kernel as a pseudo-coordinate; covers `ckgconv.pe.coordinate` too."""

from dataclasses import replace

import pytest
import scipy.linalg
import torch
from golden import small_recipe
from graphs_for_tests import edge_lists, molecules, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from ckgconv import CKGCN, CKGConv, InputError, pack
from ckgconv.pairs import Encoding
from ckgconv.pe import COORDINATES, AddHeat, heat
from ckgconv.pe.heat import FIRST_TIME, MOST_STEPS

pytestmark = pytest.mark.usefixtures("double")

RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def by_definition(nodes, edge_index, weights, steps):
    """[n, n, K] by scipy, one graph and one time after another."""
    matrix = torch.zeros(nodes, nodes)
    for (i, j), weight in zip(edge_index.T.tolist(), weights.tolist(), strict=True):
        matrix[i, j] += weight / 2
        matrix[j, i] += weight / 2
    degree = matrix.sum(1)
    scale = torch.where(degree > 0, degree, 1.0) ** -0.5
    laplacian = torch.diag((degree > 0).double()) - scale[:, None] * matrix * scale
    times = [FIRST_TIME * 2**step for step in range(steps)]
    return torch.stack([torch.from_numpy(scipy.linalg.expm(-time * laplacian.numpy())) for time in times], dim=-1)


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(1, 6), st.integers(0, 2**31))
def test_equals_the_definition_on_any_graphs(graphs, steps, seed):
    """Directed and weighted ones, with self loops, parallel edges and isolated nodes as they fall."""
    total = sum(index.shape[1] for _, index in graphs)
    weights = torch.rand(total, generator=torch.Generator().manual_seed(seed)) + 0.1
    coordinates = heat(packed(*graphs, weights=weights), steps)
    expected, used = [], 0
    for nodes, index in graphs:
        part = weights[used : used + index.shape[1]]
        used += index.shape[1]
        expected.append(by_definition(nodes, index, part, steps).reshape(nodes**2, steps))
    torch.testing.assert_close(coordinates.values, torch.cat(expected), rtol=0, atol=1e-12)
    assert coordinates.complete


def test_flowing_twice_is_flowing_twice_as_long():
    values = heat(pack(random_edges(8, 12, 0), num_nodes=8), 5).values.view(8, 8, 5)
    for step in range(4):
        torch.testing.assert_close(values[..., step] @ values[..., step], values[..., step + 1], rtol=0, atol=1e-13)


def test_renumbering_nodes_renumbers_pairs():
    edges, order = random_edges(9, 14, 3), torch.randperm(9)
    values = heat(pack(edges, num_nodes=9), 4).values.view(9, 9, 4)
    renumbered = heat(pack(order[edges], num_nodes=9), 4).values.view(9, 9, 4)
    torch.testing.assert_close(renumbered[order][:, order], values, rtol=0, atol=1e-13)
    torch.testing.assert_close(values, values.transpose(0, 1), rtol=0, atol=1e-13)


def test_no_heat_crosses_to_another_component_or_leaves_an_isolated_node():
    values = heat(pack(torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), num_nodes=5), 20).values.view(5, 5, 20)
    assert not values[:2, 2:].any()
    assert values[4, 4].tolist() == [1.0] * 20
    torch.testing.assert_close(values[0, :2, -1], torch.full((2,), 0.5))  # at rest


@pytest.mark.parametrize("steps", [MOST_STEPS, 8])
def test_heat_comes_to_rest_and_rounding_does_not_grow(steps):
    """At rest P_ij = √(d_i d_j) / Σ d."""
    values = heat(pack(RING, num_nodes=4), steps, torch.float64).values
    torch.testing.assert_close(values[:, -1], torch.full((16,), 0.25), rtol=0, atol=1e-6)


def test_the_scale_of_the_weights_changes_nothing():
    edges = random_edges(6, 10, 1)
    weights = torch.rand(edges.shape[1]) + 0.1
    one, other = (heat(pack(edges, edge_weight=weights * scale, num_nodes=6), 4).values for scale in (1.0, 1e6))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_gradients_in_the_weights_where_eigenvalues_coincide():
    weights = torch.ones(RING.shape[1], requires_grad=True)
    assert gradcheck(lambda values: heat(pack(RING, edge_weight=values, num_nodes=4), 3).values, weights)


def test_any_number_of_times_but_some():
    for steps in (0, MOST_STEPS + 1):
        with pytest.raises(InputError, match=f"steps is {steps}: the heat kernel has from 1 to 32 times"):
            heat(pack(RING, num_nodes=4), steps)


def test_a_network_reads_it_normalised_and_its_diagonal():
    encoding = Encoding("heat", 6, 20, "global")
    assert (encoding.channels, encoding.node_channels) == (6, 6)
    graphs = pack(RING, num_nodes=4)
    coordinates = encoding.coordinates(graphs, torch.float32)
    assert coordinates.values.dtype == torch.float32
    part = encoding.node_part(graphs, coordinates, torch.float32)
    torch.testing.assert_close(part, coordinates.values.view(4, 4, 6)[range(4), range(4)])
    with pytest.raises(InputError, match="zero between far nodes"):
        Encoding("heat", 6, 20, "sparse_global")
    assert CKGConv(4, 8, pe="heat", steps=3, support=1)(torch.rand(4, 4), RING).shape == (4, 8)
    with pytest.raises(InputError, match="not into 'heat'"):
        CKGConv(4, 8, pe="heat", degree_scaler="coordinates")


def test_precomputing_changes_nothing():
    recipe = replace(small_recipe("zinc", "global", "rrwp"), encoding="heat")
    model = CKGCN.from_recipe(recipe).double().eval()
    data = molecules(6, 1, 9)
    torch.testing.assert_close(model(AddHeat(5)(data.clone())), model(data), rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="precomputed as 'heat 4 source_to_target'"):
        model(AddHeat(4)(data.clone()))
    assert repr(AddHeat(4)) == "AddHeat(steps=4)"


def test_every_coordinate_has_the_channels_it_says():
    graphs = packed((5, random_edges(5, 6, 0)), (1, torch.zeros(2, 0, dtype=torch.int64)))
    for name, coordinate in COORDINATES.items():
        values = coordinate.values(graphs, 3, torch.float32).values
        if coordinate.whole_numbers:
            assert (values.dtype, values.shape) == (torch.int64, (26,)), name
        else:
            assert (values.dtype, values.shape) == (torch.float32, (26, coordinate.channels(3))), name
        assert bool(values.isfinite().all()) or coordinate.may_be_infinite, name
