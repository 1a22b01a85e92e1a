"""Edges lead from source to target, as in PyG: every part of the package reads them alike."""

from dataclasses import replace

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecules, random_edges
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv

from ckgconv import CKGCN, CKGConv, pack
from ckgconv.backends.cuda.assembly import Capacity
from ckgconv.backends.cuda.batch import padded_batch, store_pairs
from ckgconv.data import from_pyg
from ckgconv.pairs import given_support, hop_support
from ckgconv.pe import rrwp, spd

pytestmark = pytest.mark.usefixtures("double")

INTO_ZERO = torch.tensor([[1, 2, 3], [0, 0, 0]])
FLOWS = ("source_to_target", "target_to_source")


def influence(layer, edge_index, nodes):
    """[N, N] whether y_i changes with x_j."""
    x = torch.randn(nodes, 4, requires_grad=True)
    y = layer(x, edge_index).sum(1)
    rows = [torch.autograd.grad(y[i], x, retain_graph=True)[0].abs().sum(1) for i in range(nodes)]
    return torch.stack(rows) > 0


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("pe", ["rrwp", "spd", "rd", "pair_rwse", "heat"])
def test_a_layer_hears_the_nodes_that_pyg_layers_hear(flow, pe):
    edges = random_edges(7, 9, 3, directed=True)
    ours = CKGConv(4, 4, pe=pe, steps=3, support=1, flow=flow, kernel_norm="layer").eval()
    theirs = GATv2Conv(4, 4, flow=flow).eval()
    assert torch.equal(influence(ours, edges, 7), influence(theirs, edges, 7))


def test_senders_change_their_target():
    conv = CKGConv(4, 4, support=1).eval()
    x = torch.randn(4, 4)
    moved = x.clone()
    moved[1:] += 1
    assert (conv(moved, INTO_ZERO) - conv(x, INTO_ZERO))[0].abs().max() > 1e-3
    turned = CKGConv(4, 4, support=1, flow="target_to_source").eval()
    assert torch.equal(turned(moved, INTO_ZERO)[0], turned(x, INTO_ZERO)[0])


def test_edge_attributes_and_weights_belong_to_the_target():
    conv = CKGConv(4, 4, support=1, edge_dim=1).eval()
    x, attributes = torch.randn(4, 4), torch.zeros(3, 1)
    marked = attributes.clone()
    marked[0] = 1.0  # of 1 → 0
    changed = (conv(x, INTO_ZERO, marked) - conv(x, INTO_ZERO, attributes)).abs().amax(1) > 0
    assert changed.tolist() == [True, False, False, False]
    walks = rrwp(pack(INTO_ZERO, num_nodes=4, edge_weight=torch.tensor([2.0, 1.0, 1.0])), 1).values.view(4, 4, 2)
    assert walks[0, :, 1].tolist() == [0, 0.5, 0.25, 0.25]


def test_both_flows_agree_on_turned_edges():
    edges = random_edges(6, 8, 1, directed=True)
    one, other = pack(edges, num_nodes=6), pack(edges.flip(0), num_nodes=6, flow="target_to_source")
    assert torch.equal(rrwp(one, 3).values, rrwp(other, 3).values)
    assert torch.equal(spd(one, 3).values, spd(other, 3).values)
    assert torch.equal(hop_support(one, rrwp(one, 2), 1).sender, hop_support(other, rrwp(other, 2), 1).sender)
    pairs = torch.tensor([[1, 4], [0, 2]])
    turned = given_support(other, rrwp(other, 2), pairs.flip(0), flow="target_to_source")
    assert torch.equal(given_support(one, rrwp(one, 2), pairs).sender, turned.sender)


def one_way(data: Data) -> Data:
    kept = data.edge_index[0] < data.edge_index[1]
    return Data(x=data.x, edge_index=data.edge_index[:, kept], edge_attr=data.edge_attr[kept], y=data.y)


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("support", ["global", "sparse_global", 2])
def test_packed_batches_of_directed_graphs(flow, support):
    """Padded batches, with walks computed for them or stored, give what a plain batch gives."""
    graphs = [one_way(graph) for graph in molecules(5, 8, 11).to_data_list()]
    data = from_pyg(graphs)
    model = CKGCN.from_recipe(replace(small_recipe("zinc", support, "rrwp"), flow=flow)).double().eval()
    numbers = torch.tensor([2, 0, 1])
    expected = model(data.batch(numbers))
    stored = store_pairs([model.prepare(data.batch(torch.arange(3)))])
    capacity = Capacity(graphs=3, nodes=26, pairs=25 + 64 + 121 + 3, edges=60, largest=11)
    for source in [stored] if support != "global" else [stored, None]:
        batch, _ = padded_batch(data, source, numbers, capacity, model.encoding, torch.float64)
        torch.testing.assert_close(model(batch), expected, rtol=0, atol=1e-12)


def test_undirected_graphs_have_no_flow():
    data = molecules(6, 9)
    one, other = (CKGCN.from_recipe(replace(small_recipe("zinc", 2, "rrwp"), flow=flow)).double() for flow in FLOWS)
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(one.eval()(data), other.eval()(data), rtol=0, atol=1e-13)
