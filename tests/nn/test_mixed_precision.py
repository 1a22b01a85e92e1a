"""The layer in 16 bits, under autocast and by its parameters, beside its float32 self and PyG's GATv2Conv.

Covers the precisions of `ckgconv.nn.layer_input`.
"""

import copy
from itertools import product

import pytest
import torch
from graphs_for_tests import molecule
from torch_geometric.data import Batch
from torch_geometric.nn import GATv2Conv

from ckgconv import CKGConv, InputError
from ckgconv.backends import accelerate

HALVES = (torch.bfloat16, torch.float16)
FLOATS = (torch.float32, *HALVES)
PES = ("rrwp", "spd", "rd", "pair_rwse", "heat")
CASES = [(pe, support) for pe, support in product(PES, ("global", 2))] + [("rrwp", "sparse_global")]
GRAPHS = Batch.from_data_list([molecule(size, size, torch.float32) for size in (9, 14, 20, 5)])
EDGES, NODES = GRAPHS.edge_index, GRAPHS.num_nodes


def layer(**options):
    torch.manual_seed(1)
    conv = CKGConv(8, 12, steps=4, edge_dim=3, **options)
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return conv


def inputs(dtype=torch.float32, attributes=torch.float32):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(NODES, 8, generator=generator)
    # 16 bits hold them exactly, so that only the layer rounds.
    x, features = x.bfloat16(), torch.randn(EDGES.shape[1], 3, generator=generator).bfloat16()
    return x.to(dtype).requires_grad_(), EDGES, features.to(attributes), GRAPHS.batch


def run(conv, *given, autocast=None):
    """Result, gradient of x and of the parameters, float32."""
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        y = conv(*given)
    y.float().square().sum().backward()
    return y, [given[0].grad.float(), *(parameter.grad.float() for parameter in conv.parameters())]


def error(found, expected):
    found, expected = found.detach().double(), expected.detach().double()
    return ((found - expected).norm() / expected.norm().clamp(min=1e-3)).item()


def close(one, other, dtype):
    """Results and gradients, as far as some dozen roundings of each value allow."""
    (y, gradients), (expected, wanted) = one, other
    digits = 0.04 if dtype == torch.bfloat16 else 0.006
    assert error(y, expected) < digits
    together = [torch.cat([value.flatten() for value in values]) for values in (gradients, wanted)]
    assert error(*together) < 3 * digits
    assert all(torch.isfinite(value).all() for value in gradients)


@pytest.mark.parametrize(("pe", "support"), CASES)
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_sixteen_bits_are_near_float32(pe, support, norm):
    exact = layer(pe=pe, support=support, kernel_norm=norm)
    expected = run(copy.deepcopy(exact), *inputs())
    for dtype in HALVES:
        for x in (torch.float32, dtype):
            close(run(copy.deepcopy(exact), *inputs(x), autocast=dtype), expected, dtype)
        narrow = copy.deepcopy(exact).to(dtype)
        found = run(narrow, *inputs(dtype, dtype))
        assert found[0].dtype == dtype
        assert all(parameter.grad.dtype == dtype for parameter in narrow.parameters())
        close(found, expected, dtype)


@pytest.mark.parametrize("options", [{"heads": 4}, {"groups": 2}, {"degree_scaler": "coordinates"}])
@pytest.mark.parametrize("constraint", ["softmax", "softplus"])
@pytest.mark.parametrize("support", ["global", "sparse_global"])
def test_every_channel_rule_and_constraint(options, constraint, support):
    exact = layer(support=support, constraint=constraint, **options)
    expected = run(copy.deepcopy(exact), *inputs())
    close(run(copy.deepcopy(exact), *inputs(torch.bfloat16), autocast=torch.bfloat16), expected, torch.bfloat16)
    close(run(copy.deepcopy(exact).bfloat16(), *inputs(torch.bfloat16)), expected, torch.bfloat16)


def accepted(conv, parameters, x, attributes, autocast):
    given = inputs(x, attributes)
    try:
        run(copy.deepcopy(conv).to(parameters), *given[:3], autocast=autocast)
    except (RuntimeError, InputError):
        return False
    return True


def test_what_gatv2_takes_is_taken():
    ours, theirs = layer(), GATv2Conv(8, 12, edge_dim=3)
    taken = 0
    for parameters, x, attributes, autocast in product(FLOATS, FLOATS, FLOATS, (None, torch.bfloat16)):
        case = (parameters, x, attributes, autocast)
        if accepted(theirs, *case):
            taken += 1
            assert accepted(ours, *case), case
    assert taken > 10


def test_attributes_of_any_floating_dtype():
    conv = layer().eval()
    expected = conv(*inputs())
    for dtype in (torch.float64, *HALVES):
        torch.testing.assert_close(conv(*inputs(attributes=dtype)), expected)
    with pytest.raises(InputError, match=r"edge_attr has dtype torch\.int64"):
        conv(*inputs(attributes=torch.int64))


@pytest.mark.parametrize("dtype", HALVES)
def test_other_precisions_are_refused_without_autocast(dtype):
    with pytest.raises(InputError, match="x has dtype"):
        layer()(*inputs(dtype))
    with pytest.raises(InputError, match="x has dtype"):
        layer().to(dtype)(*inputs(torch.float32))
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(InputError, match=r"x has dtype torch\.float64"):
        layer()(*inputs(torch.float64))


@pytest.mark.parametrize("dtype", HALVES)
def test_running_statistics_are_float32(dtype):
    """In bfloat16 they would stop moving while still 3 % away."""
    exact = layer()
    narrow = copy.deepcopy(exact).to(dtype)
    assert all(buffer.dtype == torch.float32 for buffer in narrow.buffers())
    assert copy.deepcopy(exact).double().kernel.stem.norm.running_mean.dtype == torch.float64
    with torch.no_grad():
        for _ in range(80):
            narrow(*inputs(dtype, dtype))
            exact(*inputs())
    mine, theirs = narrow.kernel.stem.encoder.norm, exact.kernel.stem.encoder.norm
    torch.testing.assert_close(mine.running_mean, theirs.running_mean)
    torch.testing.assert_close(mine.running_variance, theirs.running_variance)
    for norm, other in ((narrow.kernel.mlp.norm, exact.kernel.mlp.norm),):
        assert error(norm.running_mean, other.running_mean) < 0.02
        assert error(norm.running_variance, other.running_variance) < 0.02
    again = narrow.float()
    assert all(parameter.dtype == torch.float32 for parameter in again.parameters())


def test_sums_of_many_nodes_do_not_saturate():
    """300 ones are 300, also where bfloat16 ends at 256."""
    nodes = 700
    star = torch.stack([torch.zeros(nodes - 1, dtype=torch.int64), torch.arange(1, nodes)])
    edges = torch.cat([star, star.flip(0)], dim=1)
    for constraint in ("none", "softmax"):
        conv = CKGConv(4, 4, steps=1, support=2, constraint=constraint).eval()
        x = 1 + torch.rand(nodes, 4).bfloat16()
        assert error(conv.bfloat16()(x, edges), conv.float()(x.float(), edges)) < 0.02


@pytest.mark.parametrize("training", [True, False])
def test_a_given_kernel_and_an_accelerated_layer(training):
    own = layer(kernel=torch.nn.Linear(8, 8)).train(training)
    fast = accelerate(layer().train(training))
    for conv in (own, fast):
        expected = run(copy.deepcopy(conv), *inputs())
        close(run(copy.deepcopy(conv), *inputs(torch.bfloat16), autocast=torch.bfloat16), expected, torch.bfloat16)
        close(run(copy.deepcopy(conv).bfloat16(), *inputs(torch.bfloat16)), expected, torch.bfloat16)
