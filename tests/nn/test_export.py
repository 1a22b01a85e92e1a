"""A layer with encoded graphs is one program: compiled without a break, exported with free sizes."""

import copy
import io

import pytest
import torch
from graphs_for_tests import random_edges

from ckgconv import CKGConv, InputError
from ckgconv.nn.export import export_layer

pytestmark = [
    pytest.mark.usefixtures("double"),
    # torch's compiler makes instances of autograd functions, which torch itself warns of.
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]

EDGES = random_edges(7, 9, 3)
X = torch.randn(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
ATTRIBUTES = torch.randn(18, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
VARIANTS = [
    {},
    {"support": "sparse_global", "steps": 2},
    {"support": 2},
    {"support": 0},
    {"pe": "spd"},
    {"pe": "rd"},
    {"heads": 2, "constraint": "softmax"},
    {"groups": 2, "degree_scaler": "coordinates"},
    {"kernel": "given"},
]


def layer(options: dict, edge_dim: int | None = 3) -> CKGConv:
    kernel = {"kernel": torch.nn.Linear(9 + (edge_dim or 0), 4)} if "kernel" in options else {}
    return CKGConv(4, 6, edge_dim=edge_dim, **{**options, **kernel})


@pytest.fixture(autouse=True)
def _forget():
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_compiled_without_a_break(options):
    conv = layer(options)
    results = []
    for compiled in (False, True):
        copied, x = copy.deepcopy(conv), X.clone().requires_grad_()
        call = torch.compile(copied, fullgraph=True, backend="aot_eager") if compiled else copied
        y = call(x, EDGES, ATTRIBUTES, pairs=copied.encode(EDGES, num_nodes=7))
        gradients = torch.autograd.grad(y.sin().sum(), [x, *copied.parameters()], allow_unused=True)
        results.append([y, *gradients, *copied.buffers()])
    for one, other in zip(*results, strict=True):
        assert (one is None and other is None) or torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11) is None


def test_compiled_to_machine_code():
    conv = layer({}, edge_dim=None)
    pairs = conv.encode(EDGES, num_nodes=7)
    x = X.clone().requires_grad_()
    y = torch.compile(conv, fullgraph=True)(x, EDGES, pairs=pairs)
    expected = copy.deepcopy(conv)(x, EDGES, pairs=pairs)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(*(torch.autograd.grad(result.sin().sum(), x)[0] for result in (y, expected)))


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_exported(options):
    conv = layer(options).eval()
    pairs = conv.encode(EDGES, num_nodes=7)
    program = torch.export.export(conv, (X, EDGES, ATTRIBUTES), {"pairs": pairs})
    torch.testing.assert_close(program.module()(X, EDGES, ATTRIBUTES, pairs=pairs), conv(X, EDGES, ATTRIBUTES))


@pytest.mark.parametrize("options", [{}, {"support": "sparse_global", "steps": 2}, {"support": 2}], ids=str)
def test_exported_with_free_sizes(options):
    conv = layer(options, edge_dim=None)
    file = io.BytesIO()
    torch.export.save(export_layer(conv, X, EDGES, conv.encode(EDGES, num_nodes=7)), file)
    file.seek(0)
    program = torch.export.load(file)
    assert conv.training
    conv.eval()
    other, x = random_edges(11, 14, 0), torch.randn(11, 4)
    result = program.module()(x, other, pairs=conv.encode(other, num_nodes=11))
    torch.testing.assert_close(result, conv(x, other))


def test_without_encoded_graphs_the_sentence_says_to_encode():
    conv = layer({}, edge_dim=None)
    words = r"pairs = conv\.encode\(edge_index, num_nodes=…\)"
    with pytest.raises(torch._dynamo.exc.Unsupported, match=words):
        torch.compile(conv, fullgraph=True, backend="aot_eager")(X, EDGES)
    with pytest.raises(InputError, match=words):
        torch.export.export(conv, (X, EDGES))
    y = torch.compile(conv, backend="aot_eager")(X, EDGES)
    torch.testing.assert_close(y, copy.deepcopy(conv)(X, EDGES))


@pytest.mark.parametrize(
    ("x", "options", "sentence"),
    [
        (X[:6], {}, r"x has shape \[6, 4\], expected \[7, 4\]"),
        (X[:, :3], {}, r"x has shape \[7, 3\]"),
        (X, {"steps": 4}, "pairs were encoded as rrwp 8"),
        (X, {"edge_dim": 3}, "edge_attr is missing"),
    ],
)
def test_shapes_and_encodings_are_refused_in_a_program_too(x, options, sentence):
    pairs = CKGConv(4, 6).encode(EDGES, num_nodes=7)
    with pytest.raises(InputError, match=sentence):
        torch.export.export(CKGConv(4, 6, **options), (x, EDGES), {"pairs": pairs})


def test_a_layer_without_parameters_is_no_program():
    conv = CKGConv(-1, 6)
    pairs = conv.encode(EDGES, num_nodes=7)
    with pytest.raises(ValueError, match="Call `forward` with a dummy batch"):
        torch.export.export(conv, (X, EDGES), {"pairs": pairs})
    with pytest.raises(Exception, match="call the layer once before it is compiled"):
        torch.compile(conv, fullgraph=True, backend="aot_eager")(X, EDGES, pairs=pairs)
    torch.compile(conv, backend="aot_eager")(X, EDGES)
    assert conv.in_channels == 4
