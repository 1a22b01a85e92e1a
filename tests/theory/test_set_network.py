import pytest
import torch
from graphs_for_tests import packed, random_edges

from ckgconv.theory import set_layer

pytestmark = pytest.mark.usefixtures("double")


def test_one_rrwp_is_an_equivariant_set_layer_whatever_the_edges():
    gamma, beta, bias = torch.randn(3, 4)
    layer = set_layer(gamma, beta, bias)
    graphs = packed((6, random_edges(6, 8, 0)), (9, random_edges(9, 3, 1)))
    x = torch.randn(15, 4)
    y = layer(x, graphs.edge_index, batch=graphs.node_graph)
    for nodes in (slice(0, 6), slice(6, 15)):
        expected = gamma * x[nodes] + beta * x[nodes].mean(0) + bias
        torch.testing.assert_close(y[nodes], expected, rtol=0, atol=1e-12)
    without_edges = layer(x, graphs.edge_index[:, :0], batch=graphs.node_graph)
    torch.testing.assert_close(without_edges, y, rtol=0, atol=1e-12)
