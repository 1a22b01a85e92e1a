"""Bipartite graphs: the layer on the union of sources and targets, read at the targets; and sampled graphs."""

import copy

import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv, to_hetero

from ckgconv import CKGConv, InputError
from ckgconv.nn.layer_input import GivenInput, plain_input

pytestmark = pytest.mark.usefixtures("double")

# Four sources, three targets; target 1 has no source.
EDGES = torch.tensor([[0, 1, 3, 2, 2], [0, 0, 2, 2, 0]])
UNION = EDGES + torch.tensor([[0], [4]])
SOURCE = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TARGET = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("pe", "support"), [("rrwp", 1), ("rrwp", "sparse_global"), ("spd", 1), ("heat", "global")])
@pytest.mark.parametrize("training", [True, False])
def test_a_bipartite_layer_is_the_layer_on_the_union(pe, support, training):
    conv = CKGConv((5, 5), 6, pe=pe, steps=1, support=support, edge_dim=2).train(training)
    attributes, weights = torch.randn(5, 2), torch.rand(5)
    expected = copy.deepcopy(conv)(torch.cat([SOURCE, TARGET]), UNION, attributes, edge_weight=weights)[4:]
    y = conv((SOURCE, TARGET), EDGES, attributes, edge_weight=weights)
    torch.testing.assert_close(y, expected)
    assert y.shape == SAGEConv((5, 5), 6).double()((SOURCE, TARGET), EDGES).shape


def test_one_hop_of_a_bipartite_graph_is_the_target_and_its_sources():
    """With ψ = M_ij alone and no projection, the mean of the sources over |supp(i)| times |supp(i)|."""

    class Walk(torch.nn.Module):
        def forward(self, coordinates):
            return coordinates[:, 1:].expand(-1, 5)

    conv = CKGConv(5, 5, steps=1, support=1, kernel=Walk(), degree_scaler="none")
    torch.nn.init.eye_(conv.convolution.projection.weight)
    torch.nn.init.zeros_(conv.convolution.projection.bias)
    y = conv((SOURCE, TARGET), EDGES)
    mean = torch.stack([SOURCE[[0, 1, 2]].mean(0), torch.zeros(5), SOURCE[[2, 3]].mean(0)])
    torch.testing.assert_close(y, mean)


def test_encoded_sparse_and_compiled():
    conv = CKGConv(5, 6, steps=1, support=1).eval()
    expected = conv((SOURCE, TARGET), EDGES)
    pairs = conv.encode(EDGES, num_nodes=(4, 3))
    torch.testing.assert_close(conv((SOURCE, TARGET), EDGES, pairs=pairs), expected)
    matrix = torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(5), (3, 4), check_invariants=True)
    torch.testing.assert_close(conv((SOURCE, TARGET), matrix), expected)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled((SOURCE, TARGET), EDGES, pairs=pairs), expected)
    torch.compiler.reset()
    plain = plain_input(GivenInput((SOURCE, TARGET), matrix), "source_to_target")
    assert torch.equal(plain.graph.edge_index, UNION)


@pytest.mark.parametrize(
    ("x", "change", "sentence"),
    [
        ((SOURCE, None), {}, "x_target is a NoneType, not a tensor: .* zeros where nodes have none"),
        ((SOURCE, TARGET[:, :4]), {}, "x_source has 5 features, x_target has 4, .* project them to one width"),
        ((SOURCE, TARGET), {"batch": torch.zeros(7).long()}, r"HeteroData.to_homogeneous\(\)"),
        ((SOURCE, TARGET), {"edge_index": EDGES.flip(0)}, "contains 3 among its targets, but there are 3"),
        ((SOURCE[:2], TARGET), {}, "contains 3 among its sources, but there are 2"),
    ],
)
def test_other_pairs_are_refused(x, change, sentence):
    with pytest.raises(InputError, match=sentence):
        CKGConv(5, 6)(x, **{"edge_index": EDGES, **change})


def test_other_bipartite_layers_are_refused():
    with pytest.raises(InputError, match="build it with flow 'source_to_target'"):
        CKGConv(5, 6, flow="target_to_source")((SOURCE, TARGET), EDGES)
    with pytest.raises(InputError, match=r"in_channels is \(5, 3\), .* project them to one width"):
        CKGConv((5, 3), 6)


def hetero() -> HeteroData:
    generator = torch.Generator().manual_seed(3)
    data = HeteroData()
    data["author"].x = torch.randn(4, 5, generator=generator)
    data["paper"].x = torch.randn(6, 5, generator=generator)
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2, 3, 3], [0, 1, 2, 3, 5]])
    data["paper", "written_by", "author"].edge_index = torch.tensor([[0, 1, 2, 3, 5], [0, 1, 2, 3, 3]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1, 4], [1, 0, 5]])
    return data


class Net(torch.nn.Module):
    def __init__(self, make):
        super().__init__()
        self.first, self.second = make(8), make(3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.mark.filterwarnings("ignore:There exist node types:UserWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda out: CKGConv((-1, -1), out, steps=1, support=1),
        lambda out: CKGConv(-1, out, pe="spd", steps=2, support=2),
        lambda out: SAGEConv((-1, -1), out),  # what a layer of PyG does here
    ],
)
def test_a_network_becomes_heterogeneous(make):
    data = hetero()
    model = to_hetero(Net(make), data.metadata(), aggr="sum").double()
    y = model(data.x_dict, data.edge_index_dict)
    assert {name: tuple(value.shape) for name, value in y.items()} == {"author": (4, 3), "paper": (6, 3)}
    sum(value.square().sum() for value in y.values()).backward()
    assert all(parameter.grad is not None for name, parameter in model.named_parameters() if "unreach" not in name)
    if isinstance(model.first["author__writes__paper"], CKGConv):
        papers = model.first["paper__cites__paper"].eval(), model.first["author__writes__paper"].eval()
        x, edges = data.x_dict, data.edge_index_dict
        sums = papers[0](x["paper"], edges["paper", "cites", "paper"])
        sums = sums + papers[1]((x["author"], x["paper"]), edges["author", "writes", "paper"])
        layers = HeteroConv({("paper", "cites", "paper"): papers[0], ("author", "writes", "paper"): papers[1]})
        torch.testing.assert_close(layers(x, edges)["paper"], sums)


def test_a_sampled_neighbourhood():
    """What a NeighborLoader yields: local numbers, edges towards the seeds, features of all sampled nodes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 5, generator=generator)
    ring = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
    edge_index = torch.cat([ring, ring.flip(0)], dim=1)
    conv = CKGConv(5, 6, steps=2, support=2).eval()
    seeds = torch.tensor([4, 20])
    # Two hops around the seeds, all edges that point into nodes nearer to them than two hops.
    n_id = torch.tensor([4, 20, 3, 5, 19, 21, 2, 6, 18, 22])
    local = torch.full((30,), -1)
    local[n_id] = torch.arange(10)
    inner = torch.isin(edge_index[1], n_id[:6])
    sampled = local[edge_index[:, inner]]
    y = conv(x[n_id], sampled)[: len(seeds)]
    torch.testing.assert_close(y, conv(x, edge_index)[seeds])
