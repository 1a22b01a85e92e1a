"""Second derivatives, transforms of `torch.func` and training on forces, of the layer and of the network."""

import copy
from dataclasses import replace
from functools import partial

import pytest
import torch
from golden import small_recipe
from torch.autograd import gradgradcheck
from torch.func import functional_call, grad, hessian, jvp, stack_module_state, vmap
from torch_geometric.data import Data

from ckgconv import CKGCN, CKGConv, InputError
from ckgconv.backends import accelerate, plain
from ckgconv.recipe import AttributeRecipe

pytestmark = pytest.mark.usefixtures("double")

RING = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
EDGES = torch.cat([RING, RING.flip(0)], dim=1)
GENERATOR = torch.Generator().manual_seed(1)
X = torch.randn(5, 3, dtype=torch.float64, generator=GENERATOR)
WEIGHT = (torch.rand(6, dtype=torch.float64, generator=GENERATOR) + 0.5).repeat(2)
ATTRIBUTES = torch.randn(12, 2, dtype=torch.float64, generator=GENERATOR)
every_support = pytest.mark.parametrize("support", ["global", "sparse_global", 2])
every_mode = pytest.mark.parametrize("training", [True, False])


def shaken(module):
    """All parameters and statistics away from their initial values, which are special."""
    with torch.no_grad():
        for value in (*module.parameters(), *module.buffers()):
            value += 0.3 * torch.rand_like(value)
    return module


def layer(support, training=True, **options):
    return shaken(CKGConv(3, 2, steps=3, support=support, edge_dim=2, **options)).train(training)


def network(support, training=True):
    recipe = small_recipe("zinc", support, "rrwp")
    linear = {"node": AttributeRecipe("linear", (3,)), "edge": AttributeRecipe("linear", (2,))}
    return shaken(CKGCN(replace(recipe, width=4, blocks=1, steps=3, **linear)).double()).train(training)


def predict(model, x, edge_weight):
    if isinstance(model, CKGCN):
        return model(Data(x=x, edge_index=EDGES, edge_attr=ATTRIBUTES, edge_weight=edge_weight))
    return model(x, EDGES, ATTRIBUTES, edge_weight=edge_weight)


def as_function(model):
    """Prediction of x, edge weights and all parameters."""
    names = [name for name, _ in model.named_parameters()]

    def run(x, edge_weight, *values):
        class Call(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self):
                return predict(self.model, x, edge_weight)

        parameters = {f"model.{name}": value for name, value in zip(names, values, strict=True)}
        return functional_call(Call(), parameters, ())

    return run


def inputs_of(model):
    parameters = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    return (X.clone().requires_grad_(), WEIGHT.clone().requires_grad_(), *parameters)


@every_support
@every_mode
@pytest.mark.parametrize("build", [layer, network])
def test_second_derivatives_by_finite_differences(build, support, training):
    model = build(support, training)
    assert gradgradcheck(as_function(model), inputs_of(model), fast_mode=True, atol=1e-4, rtol=1e-2)


@pytest.mark.parametrize("pe", ["spd", "rd", "pair_rwse", "heat"])
@pytest.mark.parametrize("constraint", ["softmax", "softplus"])
def test_second_derivatives_of_other_coordinates_and_constraints(pe, constraint):
    model = layer(2, pe=pe, constraint=constraint, heads=3)
    assert gradgradcheck(as_function(model), inputs_of(model), fast_mode=True, atol=1e-4, rtol=1e-2)


@every_support
@every_mode
def test_the_hessian_is_that_of_every_entrance(support, training):
    model = layer(support, training)

    def of_x(x):
        return predict(model, x, WEIGHT).square().sum()

    def of_weight(edge_weight):
        return predict(model, X, edge_weight).square().sum()

    for function, value in ((of_x, X), (of_weight, WEIGHT)):
        rows = [
            torch.autograd.grad(one, tracked, retain_graph=True)[0]
            for tracked in [value.clone().requires_grad_()]
            for one in torch.autograd.grad(function(tracked), tracked, create_graph=True)[0].flatten()
        ]
        expected = torch.stack(rows).view(*value.shape, *value.shape)
        assert expected.abs().max() > 1e-6
        found = [torch.autograd.functional.hessian(function, value), hessian(function)(value)]
        if function is of_x or support == "global":  # torch cannot vectorise the gradient of x[index]
            for outer in ("reverse-mode", "forward-mode"):
                run = partial(torch.autograd.functional.hessian, vectorize=True, outer_jacobian_strategy=outer)
                found.append(run(function, value))
        for each in found:
            torch.testing.assert_close(each, expected, rtol=1e-8, atol=1e-12)


@every_support
@every_mode
def test_transforms_of_parameters(support, training):
    """grad, forward over reverse, and an ensemble by vmap, with the running statistics of each member."""
    models = [layer(support, training) for _ in range(3)]
    apart = copy.deepcopy(models)
    parameters, statistics = stack_module_state(models)

    def energy(own, held):
        return functional_call(models[0], (own, held), (X, EDGES, ATTRIBUTES)).sin().sum()

    together = vmap(grad(energy))(parameters, statistics)
    for place, model in enumerate(apart):
        model(X, EDGES, ATTRIBUTES).sin().sum().backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(together[name][place], parameter.grad, rtol=1e-8, atol=1e-12)
        for name, buffer in model.named_buffers():
            torch.testing.assert_close(statistics[name][place], buffer)
    model = apart[0]
    values = {name: parameter.detach() for name, parameter in model.named_parameters()}
    directions = {name: torch.randn_like(value) for name, value in values.items()}
    held = dict(model.named_buffers())
    _, curvature = jvp(lambda own: grad(energy)(own, held), (values,), (directions,))
    tracked = {name: value.clone().requires_grad_() for name, value in values.items()}
    first = torch.autograd.grad(energy(tracked, held), list(tracked.values()), create_graph=True)
    along = sum((one * directions[name]).sum() for one, name in zip(first, tracked, strict=True))
    for name, second in zip(tracked, torch.autograd.grad(along, list(tracked.values())), strict=True):
        torch.testing.assert_close(curvature[name], second, rtol=1e-7, atol=1e-10)


@every_support
def test_running_statistics_follow_under_transforms(support):
    model = layer(support)
    other = copy.deepcopy(model)
    other(X, EDGES, ATTRIBUTES)
    values = {name: parameter.detach() for name, parameter in model.named_parameters()}
    grad(lambda own: functional_call(model, own, (X, EDGES, ATTRIBUTES)).sum())(values)
    for mine, theirs in zip(model.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_features_of_many_copies_by_vmap():
    model = layer("global", training=False)
    copies = torch.stack([X, 2 * X, -X])
    found = vmap(lambda x: model(x, EDGES, ATTRIBUTES))(copies)
    for one, x in zip(found, copies, strict=True):
        torch.testing.assert_close(one, model(x, EDGES, ATTRIBUTES))


@every_support
@every_mode
def test_forces_train(support, training):
    """E(r) with edge weights exp(-|r_i - r_j|²): F = -∂E/∂r is right, and so is the gradient of a loss on F."""
    model = layer(support, training)
    position, wanted = torch.randn(5, 3, requires_grad=True), 0.1 * torch.randn(5, 3)

    def energy(r):
        apart = (r[EDGES[0]] - r[EDGES[1]]).square().sum(-1)
        return predict(model, r.sin(), torch.exp(-apart)).sum()

    def loss():
        (slope,) = torch.autograd.grad(energy(position), position, create_graph=True)
        return (-slope - wanted).square().mean()

    parameter = model.convolution.projection.weight
    (slope,) = torch.autograd.grad(loss(), parameter)
    direction, step = torch.randn_like(parameter), 1e-5
    values = []
    for side in (step, -step):
        with torch.no_grad():
            parameter += side * direction
        values.append(loss().item())
        with torch.no_grad():
            parameter -= side * direction
    numeric = (values[0] - values[1]) / (2 * step)
    assert (slope * direction).sum().item() == pytest.approx(numeric, rel=1e-5, abs=1e-9)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    before = loss().item()
    for _ in range(60):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    assert loss().item() < 0.5 * before


@pytest.mark.parametrize("build", [layer, network])
def test_passes_of_a_cpu_refuse_second_derivatives_and_plain_computes_them(build):
    model = build("global")
    expected = torch.autograd.functional.hessian(lambda x: predict(model, x, WEIGHT).square().sum(), X)
    fast = accelerate(copy.deepcopy(model))
    with pytest.raises(InputError, match=r"first derivatives only: .*plain\(model\)"):
        torch.autograd.grad(predict(fast, X, WEIGHT).sum(), list(fast.parameters()), create_graph=True)
    found = hessian(lambda x: predict(fast, x, WEIGHT).square().sum())(X)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)
    again = torch.autograd.functional.hessian(lambda x: predict(plain(fast), x, WEIGHT).square().sum(), X)
    torch.testing.assert_close(again, expected, rtol=1e-8, atol=1e-10)
