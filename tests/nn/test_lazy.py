"""in_channels=-1: parameters without shapes until the first call, as in PyG's layers."""

import copy
import io

import pytest
import torch
from graphs_for_tests import random_edges
from torch.nn.parameter import UninitializedParameter
from torch_geometric.nn import GATv2Conv

from ckgconv import CKGConv, InputError
from ckgconv.nn.lazy import Unbuilt

EDGES = random_edges(7, 9, 3)
X = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
OPTIONS = [{}, {"heads": 2}, {"groups": 2}, {"support": "sparse_global", "degree_scaler": "coordinates"}, {"pe": "rd"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_first_call_builds_the_layer(options):
    lazy, known = CKGConv(-1, 6, **options), CKGConv(4, 6, **options)
    parameters = dict(lazy.named_parameters())
    assert parameters.keys() == dict(known.named_parameters()).keys()
    assert all(isinstance(value, UninitializedParameter) for value in parameters.values())
    assert all(isinstance(part, Unbuilt) for part in lazy.children())
    lazy.reset_parameters()
    torch.manual_seed(5)
    y = lazy(X, EDGES)
    torch.manual_seed(5)
    built = CKGConv(4, 6, **options)
    torch.testing.assert_close(y, built(X, EDGES))
    assert lazy.in_channels == 4
    assert repr(lazy) == repr(built)
    # The very parameters that an optimiser may already have.
    assert all(parameters[name] is value for name, value in lazy.named_parameters())
    with pytest.raises(InputError, match=r"x has shape \[7, 3\]"):
        lazy(X[:, :3], EDGES)


def test_an_optimiser_may_come_first():
    conv = CKGConv(-1, 6)
    optimiser = torch.optim.Adam(conv.parameters())
    conv(X, EDGES).square().sum().backward()
    before = copy.deepcopy(conv.state_dict())
    optimiser.step()
    names = dict(conv.named_parameters())
    assert all(not torch.equal(before[name], value) for name, value in names.items() if value.grad.any())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_state_of_a_built_layer_builds_a_lazy_one(options):
    known, lazy = CKGConv(4, 6, **options).eval(), CKGConv(-1, 6, **options).eval()
    file = io.BytesIO()
    torch.save(known.state_dict(), file)
    file.seek(0)
    network = torch.nn.Sequential(lazy)
    network.load_state_dict({f"0.{name}": value for name, value in torch.load(file, weights_only=True).items()})
    assert lazy.in_channels == 4
    torch.testing.assert_close(lazy(X, EDGES), known(X, EDGES))
    CKGConv(4, 6, **options).load_state_dict(lazy.state_dict())


def test_state_of_a_lazy_layer():
    lazy, other = CKGConv(-1, 6), CKGConv(-1, 6)
    assert lazy.state_dict().keys() == dict(lazy.named_parameters()).keys()
    assert GATv2Conv(-1, 6).state_dict()["lin_l.weight"].__class__ is UninitializedParameter  # as PyG has it
    other.load_state_dict(lazy.state_dict())
    assert other(X, EDGES).shape == (7, 6)
    with pytest.raises(InputError, match="before its first call, so it has no values"):
        CKGConv(4, 6).load_state_dict(lazy.state_dict())


def test_copies_and_conversions():
    lazy = CKGConv(-1, 6)
    copied = copy.deepcopy(lazy).double().eval()
    for parameter in lazy.parameters():
        parameter.requires_grad = False
    assert copied(X.double(), EDGES).dtype == torch.float64
    assert copied.kernel.stem.norm.running_mean.dtype == torch.float64
    assert not copied.kernel.training
    assert lazy.in_channels == -1
    lazy(X, EDGES)
    assert not any(parameter.requires_grad for parameter in lazy.parameters())
    pairs = CKGConv(-1, 6).double().encode(EDGES, num_nodes=7)
    assert pairs.degree.dtype == torch.float64


def test_a_kernel_of_ones_own_is_kept():
    kernel = torch.nn.Linear(9, 2)
    conv = CKGConv(-1, 6, heads=2, kernel=kernel, degree_scaler="coordinates")
    conv(X, EDGES)
    assert conv.kernel.module is kernel
    with pytest.raises(InputError, match="give in_channels"):
        CKGConv(-1, 6, groups=2, kernel=kernel)
    with pytest.raises(InputError, match="heads is 3, which does not divide in_channels = 4"):
        CKGConv(-1, 6, heads=3)(X, EDGES)
