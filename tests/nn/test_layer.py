import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch import nn
from torch.autograd import gradcheck

from ckgconv import CKGConv, InputError, pack
from ckgconv.pairs import given_support, global_support
from ckgconv.pe import rrwp, sparse_rrwp

pytestmark = pytest.mark.usefixtures("double")

EDGES = random_edges(7, 9, 3)
X = torch.randn(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("pe", ["rrwp", "spd", "rd", "pair_rwse"])
@pytest.mark.parametrize("support", ["global", 1, 3])
@pytest.mark.parametrize("scaler", ["output", "none"])
def test_every_encoding_and_support_runs_and_learns(pe, support, scaler):
    conv = CKGConv(4, 6, pe=pe, steps=5, support=support, degree_scaler=scaler)
    y = conv(X, EDGES)
    assert y.shape == (7, 6)
    y.square().sum().backward()
    for name, parameter in conv.named_parameters():
        if "unreachable" not in name:
            assert parameter.grad is not None, name


@pytest.mark.parametrize("options", [{}, {"groups": 2}, {"groups": 1}, {"heads": 2}, {"degree_scaler": "coordinates"}])
@pytest.mark.parametrize("constraint", ["none", "softmax", "softplus"])
def test_sparse_global_equals_global(options, constraint):
    dense = CKGConv(4, 6, steps=2, support="global", constraint=constraint, edge_dim=3, **options)
    sparse = CKGConv(4, 6, steps=2, support="sparse_global", constraint=constraint, edge_dim=3, **options)
    sparse.load_state_dict(dense.state_dict())
    attributes = torch.randn(EDGES.shape[1], 3)
    results = []
    for conv in (dense, sparse):
        x = X.clone().requires_grad_()
        y = conv(x, EDGES, attributes)
        results.append([y, *torch.autograd.grad(y.sin().sum(), [x, *conv.parameters()]), *conv.buffers()])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_channel_rules_equal_their_sums():
    graphs = pack(EDGES, num_nodes=7)
    psi_of = {}

    class Recorder(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.linear = nn.Linear(4, channels)

        def forward(self, coordinates):
            psi_of["values"] = self.linear(coordinates).view(7, 7, -1)
            return psi_of["values"].view(49, -1)

    def bare(channels, **options):
        conv = CKGConv(4, 6, steps=3, kernel=Recorder(channels), degree_scaler="none", **options)
        assert conv.kernel_channels == channels
        return conv, conv(X, graphs.edge_index)

    conv, y = bare(4)
    depthwise = torch.einsum("ijc,jc->ic", psi_of["values"], X) / 7
    torch.testing.assert_close(y, conv.convolution.projection(depthwise))
    conv, y = bare(2, heads=2)
    values = conv.convolution.channels.value(X).view(7, 2, 2)
    heads = torch.einsum("ijh,jhc->ihc", psi_of["values"], values).reshape(7, 4) / 7
    torch.testing.assert_close(y, conv.convolution.projection(heads))
    conv, y = bare(12, groups=2)
    grouped = torch.einsum("ijgoc,jgc->igo", psi_of["values"].view(7, 7, 2, 3, 2), X.view(7, 2, 2)).reshape(7, 6) / 7
    torch.testing.assert_close(y, conv.convolution.projection(grouped))


def test_precomputed_and_given_pairs():
    conv = CKGConv(4, 4, steps=3).eval()
    graphs = pack(EDGES, num_nodes=7)
    torch.testing.assert_close(conv(X, EDGES, pairs=global_support(graphs, rrwp(graphs, 3))), conv(X, EDGES))
    chosen = torch.tensor([[1, 6, 5], [0, 0, 5]])
    y = conv(X, EDGES, pairs=given_support(graphs, rrwp(graphs, 3), chosen))
    alone = conv.convolution.projection.bias
    torch.testing.assert_close(y[3], alone)  # an empty support convolves to zero
    assert not torch.allclose(y[0], alone)
    with pytest.raises(InputError, match=r"pairs.coordinates has shape"):
        conv(X, EDGES, pairs=global_support(graphs, rrwp(graphs, 2)))
    with pytest.raises(InputError, match=r"pairs.coordinates has dtype torch.float32"):
        conv(X, EDGES, pairs=global_support(graphs, rrwp(graphs, 3, dtype=torch.float32)))
    others = packed((3, random_edges(3, 2, 0)), (4, random_edges(4, 2, 0)))
    with pytest.raises(InputError, match="other graphs"):
        conv(X, EDGES, pairs=global_support(others, rrwp(others, 3)))


def test_empty_support_leaves_the_statistics_alone():
    conv, graphs = CKGConv(4, 4, steps=2), pack(EDGES, num_nodes=7)
    empty = given_support(graphs, rrwp(graphs, 2), torch.zeros(2, 0, dtype=torch.int64))
    assert torch.isfinite(conv(X, EDGES, pairs=empty)).all()
    assert all(torch.isfinite(buffer).all() for buffer in conv.buffers())


def test_gradient_at_weight_zero_is_finite():
    weights = torch.tensor([0.0, 1.0], requires_grad=True)
    edges = torch.tensor([[0, 1], [1, 0]])
    CKGConv(4, 4)(X[:2], edges, edge_weight=weights).sum().backward()
    assert torch.isfinite(weights.grad).all()


@pytest.mark.parametrize("pe", ["rrwp", "spd", "rd", "pair_rwse"])
@pytest.mark.parametrize("support", ["global", 2])
def test_mixed_precision(pe, support):
    torch.set_default_dtype(torch.float32)
    conv = CKGConv(4, 4, pe=pe, steps=3, support=support, edge_dim=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = conv(X.float(), EDGES, torch.randn(EDGES.shape[1]))
    y.float().sum().backward()
    assert torch.isfinite(y).all()


def test_batches_do_not_mix_graphs():
    conv = CKGConv(4, 4, steps=3).eval()
    two = packed((7, EDGES), (3, random_edges(3, 2, 0)))
    other = torch.randn(3, 4)
    together = conv(torch.cat([X, other]), two.edge_index, batch=two.node_graph)
    torch.testing.assert_close(together[:7], conv(X, EDGES))


@pytest.mark.parametrize("options", [{}, {"degree_scaler": "coordinates"}, {"constraint": "softmax"}, {"heads": 2}])
def test_gradcheck(options):
    conv = CKGConv(4, 2, steps=2, support="sparse_global", **options)
    parameters = list(conv.parameters())

    def run(x, *values):
        names = [name for name, _ in conv.named_parameters()]
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, EDGES))

    for buffer in conv.buffers():
        buffer.requires_grad_(False)
    assert gradcheck(run, (X.clone().requires_grad_(), *parameters))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(x=torch.full((7, 4), torch.nan)), ["x[0, 0] is nan", "finite"]),
        (dict(x=torch.full((7, 4), torch.inf)), ["inf"]),
        (dict(x=torch.randn(7, 5)), ["x has shape [7, 5]", "4"]),
        (dict(x=X.float()), ["float32", "float64"]),
        (dict(x=X[:0]), ["empty"]),
        (dict(edge_index=EDGES + 1), ["edge_index contains 7"]),
        (dict(edge_attr=torch.randn(18, 1)), ["edge_attr is given", "edge_dim=None"]),
        (dict(edge_weight=-torch.ones(18)), ["edge_weight contains -1.0"]),
        (dict(batch=torch.zeros(6, dtype=torch.int64)), ["batch has shape [6]"]),
    ],
)
def test_bad_input_is_refused_with_a_sentence(change, words):
    conv = CKGConv(4, 4)
    with pytest.raises(InputError) as refusal:
        conv(**{"x": X, "edge_index": EDGES, **change})
    for word in words:
        assert word in str(refusal.value)


def test_bad_construction_is_refused():
    with pytest.raises(InputError, match="heads is 3"):
        CKGConv(4, 4, heads=3)
    with pytest.raises(InputError, match="groups is 3"):
        CKGConv(6, 4, groups=3)
    with pytest.raises(InputError, match="choose one of them"):
        CKGConv(4, 4, groups=2, heads=2)
    with pytest.raises(InputError, match="degree_scaler is 'both'"):
        CKGConv(4, 4, degree_scaler="both")
    with pytest.raises(InputError, match="not into 'rd'"):
        CKGConv(4, 4, pe="rd", degree_scaler="coordinates")
    with pytest.raises(InputError, match="not into 'rd'"):
        CKGConv(4, 4, pe="rd", degree_scaler="coordinates", kernel=nn.Linear(1, 4))
    with pytest.raises(InputError, match="norm is 'instance'"):
        CKGConv(4, 4, kernel_norm="instance")
    with pytest.raises(InputError, match=r"kernel_dropout is 1.5"):
        CKGConv(4, 4, kernel_dropout=1.5)
    with pytest.raises(InputError, match="kernel_blocks is -1"):
        CKGConv(4, 4, kernel_blocks=-1)


def test_reset_parameters_and_repr():
    conv = CKGConv(4, 6, edge_dim=2, steps=3)
    before = {name: value.clone() for name, value in conv.state_dict().items()}
    torch.manual_seed(5)
    conv.reset_parameters()
    assert any(not torch.equal(value, before[name]) for name, value in conv.state_dict().items())
    assert repr(conv).startswith("CKGConv(\n  4 → 6, pe='rrwp', steps=3, support='global'\n")
    given_kernel = CKGConv(4, 4, steps=3, kernel=nn.Linear(4, 4), degree_scaler="coordinates")
    given_kernel.reset_parameters()
    assert given_kernel.kernel.injection.theta3.eq(1).all()


def test_large_graph_walks_sparsely_with_hops():
    nodes = 1500
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    edges = torch.cat([ring, ring.flip(0)], dim=1)
    conv = CKGConv(2, 2, steps=3, support=2).eval()
    y = conv(torch.ones(nodes, 2), edges)
    torch.testing.assert_close(y, y[:1].expand_as(y))  # every node of a ring looks the same
    graphs = pack(edges, num_nodes=nodes)
    assert sparse_rrwp(graphs, 3).receiver.shape[0] == nodes * 7


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"in_channels": 0}, "in_channels is 0: give a whole number of at least 1"),
        ({"in_channels": None}, "in_channels is None"),
        ({"out_channels": 2.5}, "out_channels is 2.5"),
        ({"steps": 2.5}, "steps is 2.5: give a whole number of at least 0"),
        ({"steps": True}, "steps is True"),
        ({"support": True}, "The support is True"),
        ({"edge_dim": 0}, "edge_dim is 0"),
        ({"kernel_blocks": 1.5}, "kernel_blocks is 1.5"),
        ({"kernel_width": 0}, "kernel_width is 0"),
        ({"heads": False}, "heads is False"),
        ({"kernel_bloks": 1}, "CKGConv has no option 'kernel_bloks': did you mean kernel_blocks"),
    ],
)
def test_sizes_that_build_no_layer_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        CKGConv(**{"in_channels": 4, "out_channels": 4, **options})


@pytest.mark.parametrize(
    ("x", "edge_index", "sentence"),
    [
        ((torch.zeros(2, 4),) * 3, torch.zeros(2, 0, dtype=torch.int64), "x is a tuple of 3: give"),
        ([[1.0, 2.0, 3.0, 4.0]], torch.zeros(2, 0, dtype=torch.int64), "x is a list, not a tensor"),
        (torch.zeros(2, 4), ([0], [1]), "edge_index is a tuple, not a tensor"),
    ],
)
def test_inputs_that_are_no_tensors_are_refused(x, edge_index, sentence):
    with pytest.raises(InputError, match=sentence):
        CKGConv(4, 4)(x, edge_index)
