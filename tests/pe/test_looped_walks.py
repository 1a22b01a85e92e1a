"""Walks that may stay; the coordinate's place in a network is tested in `tests/nn/test_propagation.py`."""

import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch_geometric.nn import GCNConv

from ckgconv import CKGConv, pack
from ckgconv.pairs import Encoding
from ckgconv.pe import looped_walks, sparse_looped_walks

pytestmark = pytest.mark.usefixtures("double")


def by_definition(nodes, edge_index, weights, steps):
    """[n, n, K + 1], one graph at a time."""
    matrix = torch.eye(nodes)
    for (j, i), weight in zip(edge_index.T.tolist(), weights.tolist(), strict=True):
        matrix[i, j] += weight
    looped = matrix / torch.outer(matrix.sum(1), matrix.sum(0)).sqrt()
    return torch.stack([torch.linalg.matrix_power(looped, k) for k in range(steps + 1)], dim=-1)


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(0, 5), st.integers(0, 2**31))
def test_both_forms_equal_the_definition_on_any_graphs(graphs, steps, seed):
    """Directed and weighted ones, with self loops, parallel edges and isolated nodes as they fall."""
    total = sum(index.shape[1] for _, index in graphs)
    weights = torch.rand(total, generator=torch.Generator().manual_seed(seed)) + 0.1
    batch = packed(*graphs, weights=weights)
    dense, sparse = looped_walks(batch, steps), sparse_looped_walks(batch, steps)
    expected, used = [], 0
    for nodes, index in graphs:
        part = weights[used : used + index.shape[1]]
        used += index.shape[1]
        expected.append(by_definition(nodes, index, part, steps).reshape(nodes**2, -1))
    torch.testing.assert_close(dense.values, torch.cat(expected), rtol=0, atol=1e-12)
    reached = dense.values.any(-1)
    assert torch.equal(sparse.receiver, dense.receiver[reached])
    assert torch.equal(sparse.sender, dense.sender[reached])
    torch.testing.assert_close(sparse.values, dense.values[reached], rtol=0, atol=1e-12)


def test_one_step_is_the_propagation_of_gcn():
    edges, x = random_edges(9, 14, 3), torch.rand(9, 4)
    edges = edges[:, edges[0] != edges[1]]  # PyG leaves a node the loop that it has
    gcn = GCNConv(4, 4, bias=False)
    gcn.lin.weight.data = torch.eye(4)
    step = looped_walks(pack(edges, num_nodes=9), 1).values[:, 1].view(9, 9)
    torch.testing.assert_close(step @ x, gcn(x, edges))


def test_no_power_grows_though_edges_have_one_direction():
    star = torch.stack([torch.arange(1, 40), torch.zeros(39, dtype=torch.int64)])
    values = looped_walks(pack(star, num_nodes=40), 1).values[:, 1].view(40, 40)
    assert torch.linalg.matrix_norm(values, ord=2) <= 1 + 1e-12


def test_a_node_without_neighbours_keeps_all():
    values = looped_walks(pack(torch.tensor([[0, 1], [1, 0]]), num_nodes=3), 4).values.view(3, 3, 5)
    assert values[2, 2].tolist() == [1.0] * 5
    assert not values[2, :2].any()


def test_gradients_in_the_weights():
    edges = random_edges(5, 6, 1)
    weights = torch.rand(edges.shape[1], requires_grad=True)
    for form in (looped_walks, sparse_looped_walks):
        assert gradcheck(lambda each, form=form: form(pack(edges, edge_weight=each, num_nodes=5), 2).values, weights)


def test_a_layer_reads_it():
    edges = random_edges(8, 10, 2)
    encoding = Encoding("looped_walks", 2, 0, "sparse_global")
    assert (encoding.channels, encoding.node_channels) == (3, 2)
    layer, x = CKGConv(3, 4, pe="looped_walks", steps=2, support="sparse_global"), torch.rand(8, 3)
    dense = CKGConv(3, 4, pe="looped_walks", steps=2, support="global")
    dense.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x, edges), dense(x, edges))
