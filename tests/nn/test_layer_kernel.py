import pytest
import torch
from graphs_for_tests import random_edges
from torch import nn

from ckgconv import CKGConv, InputError, pack
from ckgconv.pairs import global_support
from ckgconv.pe import rrwp, sparse_rrwp

pytestmark = pytest.mark.usefixtures("double")

EDGES = random_edges(7, 9, 3)
X = torch.randn(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_given_kernel_sees_coordinates_then_edge_attributes():
    seen = {}

    class Spy(nn.Module):
        def forward(self, coordinates):
            seen["coordinates"] = coordinates
            return coordinates.new_zeros(coordinates.shape[0], 4)

    attributes = torch.randn(EDGES.shape[1], 2)
    CKGConv(4, 4, steps=2, edge_dim=2, kernel=Spy())(X, EDGES, attributes)
    assert seen["coordinates"].shape == (49, 5)
    torch.testing.assert_close(seen["coordinates"][:, :3], 7 * rrwp(pack(EDGES, num_nodes=7), 2).values)
    torch.testing.assert_close(seen["coordinates"][:, 3:].sum(0), attributes.sum(0))


def test_given_kernel_with_batch_statistics_needs_every_pair():
    kernel = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    CKGConv(4, 4, steps=2, kernel=kernel)(X, EDGES)
    with pytest.raises(InputError, match="batch statistics"):
        CKGConv(4, 4, steps=2, kernel=kernel, support="sparse_global")
    graphs = pack(EDGES, num_nodes=7)
    with pytest.raises(InputError, match="batch statistics"):
        CKGConv(4, 4, steps=2, kernel=kernel)(X, EDGES, pairs=global_support(graphs, sparse_rrwp(graphs, 2)))
    with pytest.raises(InputError, match=r"The kernel's result has shape \[49, 1\]"):
        CKGConv(4, 4, steps=2, kernel=nn.Linear(3, 1))(X, EDGES)
    with pytest.raises(InputError, match="would not be read"):
        CKGConv(4, 4, steps=2, kernel=kernel, kernel_blocks=1)
    distances = CKGConv(4, 4, pe="spd", kernel=nn.Linear(1, 4))(X, EDGES)
    assert distances.shape == (7, 4)
    alone = CKGConv(4, 4, steps=2, kernel=nn.Linear(3, 4), support="sparse_global")
    dense = CKGConv(4, 4, steps=2, kernel=nn.Linear(3, 4))
    dense.load_state_dict(alone.state_dict())
    torch.testing.assert_close(alone(X, EDGES), dense(X, EDGES))
