"""Coordinates of fixed graphs are computed once, for any number of layers, and never for other graphs."""

import copy

import pytest
import torch
from graphs_for_tests import packed, random_edges

from ckgconv import CKGConv, InputError, pack
from ckgconv.pairs import Encoding, global_support
from ckgconv.pairs.encoded import EncodedGraphs
from ckgconv.pe import rrwp

pytestmark = pytest.mark.usefixtures("double")

EDGES = random_edges(7, 9, 3)
OTHER = random_edges(7, 9, 4)
X = torch.randn(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
ATTRIBUTES = torch.randn(18, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
WEIGHTS = torch.rand(18, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.fixture
def counted(monkeypatch):
    """How often coordinates were computed."""
    calls = []
    compute = Encoding.coordinates
    monkeypatch.setattr(Encoding, "coordinates", lambda *args: calls.append(args) or compute(*args))
    return calls


@pytest.mark.parametrize(
    ("pe", "support"),
    [
        ("rrwp", "global"),
        ("rrwp", "sparse_global"),
        ("rrwp", 0),
        ("rrwp", 2),
        ("spd", 2),
        ("rd", "global"),
        ("heat", 1),
    ],
)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_encoded_graphs_give_the_same_numbers(pe, support, flow, counted):
    batch = torch.tensor([0, 0, 0, 2, 2, 2, 2])
    within = EDGES[:, batch[EDGES[0]] == batch[EDGES[1]]]
    attributes, weights = ATTRIBUTES[: within.shape[1]], WEIGHTS[: within.shape[1]]
    conv = CKGConv(4, 6, pe=pe, steps=3, support=support, edge_dim=3, flow=flow)
    results = []
    for ready in (False, True):
        layer, x = copy.deepcopy(conv), X.clone().requires_grad_()
        pairs = layer.encode(within, batch, weights) if ready else None
        y = layer(x, within, attributes, batch, weights, pairs=pairs)
        results.append([y, *torch.autograd.grad(y.sin().sum(), [x, *layer.parameters()], allow_unused=True)])
    for one, other in zip(*results, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)
    assert len(counted) == 2


def test_one_encoding_serves_several_layers_and_calls(counted):
    layers = torch.nn.ModuleList([CKGConv(4, 4, steps=3, heads=2), CKGConv(4, 6, steps=3, kernel_blocks=0)])
    pairs = layers[0].encode(EDGES, num_nodes=7)
    assert isinstance(pairs, EncodedGraphs)
    for _ in range(3):
        x = X
        for layer in layers:
            x = layer(x, EDGES, pairs=pairs)
        x.sum().backward()
    assert len(counted) == 1
    assert torch.equal(pairs.to("cpu").pairs.coordinates, pairs.pairs.coordinates)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (dict(edge_index=OTHER), "pairs were encoded with another edge_index: encode these graphs by conv.encode"),
        (dict(edge_index=EDGES.flip(0).roll(1, 1)), "another edge_index"),
        (dict(edge_index=EDGES[:, :-1]), r"another number of edges \(18, now 17\)"),
        (dict(x=torch.randn(8, 4, dtype=torch.float64)), r"another number of nodes \(7, now 8\)"),
        (dict(batch=torch.tensor([0, 0, 0, 0, 0, 0, 1])), "another batch"),
        (dict(edge_weight=WEIGHTS), "another edge_weight"),
    ],
)
def test_other_graphs_are_refused(change, sentence):
    conv = CKGConv(4, 4, steps=3)
    pairs = conv.encode(EDGES, num_nodes=7)
    with pytest.raises(InputError, match=sentence):
        conv(**{"x": X, "edge_index": EDGES, "pairs": pairs, **change})


@pytest.mark.parametrize(
    "options",
    [{"pe": "heat"}, {"steps": 4}, {"support": 2}, {"support": "sparse_global"}, {"flow": "target_to_source"}],
)
def test_other_encodings_are_refused(options):
    wanted, other = CKGConv(4, 4, **{"steps": 3, **options}), CKGConv(4, 4, steps=3)
    with pytest.raises(InputError, match=r"pairs were encoded as rrwp 3 published .*encode by this layer"):
        wanted(X, EDGES, pairs=other.encode(EDGES, num_nodes=7))


def test_edges_that_are_written_to_afterwards_are_noticed():
    edges = EDGES.clone()
    conv = CKGConv(4, 4, steps=3)
    pairs = conv.encode(edges, num_nodes=7)
    edges[:, 0] = 6
    with pytest.raises(InputError, match="another edge_index"):
        conv(X, edges, pairs=pairs)


def test_other_precisions_are_refused():
    conv = CKGConv(4, 4, steps=3)
    pairs = conv.encode(EDGES, num_nodes=7)
    with pytest.raises(InputError, match=r"encoded in torch.float64, but the layer's parameters have torch.float32"):
        conv.float()(X.float(), EDGES, pairs=pairs)


def test_a_support_of_ones_own():
    conv = CKGConv(4, 4, steps=3).eval()
    chosen = torch.tensor([[1, 6, 5], [0, 0, 5]])
    y = conv(X, EDGES, pairs=conv.encode(EDGES, num_nodes=7, support_index=chosen))
    torch.testing.assert_close(y[3], conv.convolution.projection.bias)  # an empty support convolves to zero
    with pytest.raises(InputError, match="give the number of nodes"):
        conv.encode(EDGES)


def test_a_bare_support_of_other_edges_is_refused():
    conv = CKGConv(4, 4, steps=3)
    other = pack(OTHER, num_nodes=7)
    with pytest.raises(InputError, match="pairs belongs to other graphs"):
        conv(X, EDGES, pairs=global_support(other, rrwp(other, 3)))
    weighted = pack(EDGES, num_nodes=7, edge_weight=WEIGHTS)
    pairs = global_support(weighted, rrwp(weighted, 3))
    with pytest.raises(InputError, match="another edge_weight"):
        conv(X, EDGES, pairs=pairs)
    conv(X, EDGES, edge_weight=WEIGHTS, pairs=pairs)


def test_cached_layers_encode_once_and_refuse_another_graph(counted):
    conv, plain = CKGConv(4, 4, steps=3, cached=True), CKGConv(4, 4, steps=3)
    plain.load_state_dict(conv.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(conv(X, EDGES, edge_weight=WEIGHTS), plain(X, EDGES, edge_weight=WEIGHTS))
    for _ in range(2):
        conv(X, EDGES, edge_weight=WEIGHTS).sum().backward()
    assert len(counted) == 2
    for change in (dict(edge_index=OTHER), dict(edge_weight=None), dict(batch=torch.tensor([0] * 6 + [1]))):
        with pytest.raises(InputError, match="cached=True and was first called with another"):
            conv(**{"x": X, "edge_index": EDGES, "edge_weight": WEIGHTS, **change})
    with pytest.raises(InputError, match="build the layer with cached=False"):
        conv(X, EDGES, edge_weight=WEIGHTS.clone().requires_grad_())
    conv.reset_parameters()
    conv(X, OTHER)
    conv.float()
    conv(X.float(), EDGES)


def test_graphs_of_a_batch_are_compared_graph_by_graph():
    conv = CKGConv(4, 4, steps=3)
    one, other = (
        packed((3, random_edges(3, 2, 0)), (4, random_edges(4, 2, 0))),
        pack(random_edges(7, 4, 0), num_nodes=7),
    )
    pairs = conv.encode(one.edge_index, one.node_graph)
    conv(X, one.edge_index, batch=one.node_graph.int(), pairs=pairs)
    with pytest.raises(InputError, match="another edge_index"):
        conv(X, other.edge_index, pairs=pairs)
