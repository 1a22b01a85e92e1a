"""Convolution and attention in one network: the equations pair by pair, symmetry, padding, CKGCN within, recipes.

Covers `ckgconv.nn.dynamic`, `ckgconv.nn.kernel_network` and `ckgconv.recipes.hybrid`.
"""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from small_data import padded_and_plain, small_dataset

from ckgconv import CKGCN, RECIPES, InputError, recipe, train
from ckgconv.backends import accelerate
from ckgconv.nn.hybrid import Hybrid
from ckgconv.nn.kernel import KernelValues
from ckgconv.nn.models import build_model
from ckgconv.pe import COORDINATES
from ckgconv.recipe import KernelRecipe
from ckgconv.recipes.hybrid import COLUMNS, hybrid

pytestmark = pytest.mark.usefixtures("double")

MIXINGS = ["turns", "parallel", "modulated"]
every_mixing = pytest.mark.parametrize("mixing", MIXINGS)


def small(mixing: str, drawn: bool = True, **changed) -> Hybrid:
    """Two heads of three channels in blocks of width eight; no zero-initialised part stays zero where `drawn`."""
    values = dict(mixing=mixing, width=8, blocks=3, heads=2, head_channels=3, steps=4, node_steps=5)
    values |= dict(kernel=KernelRecipe(), attention_dropout=0.0)
    torch.manual_seed(0)
    model = Hybrid(replace(recipe("zinc-hybrid").model, **(values | changed))).double()
    with torch.no_grad():
        for parameter in model.parameters() if drawn else ():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


def attention_of(heads, x, bias, pairs, i):
    """Σ_j α_ij V x_j [H d], one pair after the other."""
    rows = [row for row in range(pairs.num_pairs) if pairs.receiver[row] == i]
    query, keys = heads.query(x[i]), [heads.key(x[pairs.sender[row]]) for row in rows]
    values, results = [heads.value(x[pairs.sender[row]]) for row in rows], []
    for head in range(heads.kernel):
        part = slice(head * heads.head_channels, (head + 1) * heads.head_channels)
        scores = [query[part] @ key[part] / len(key[part]) ** 0.5 for key in keys]
        weights = torch.softmax(torch.stack(scores) + bias[rows, head], dim=0)
        results.append(sum(weight * value[part] for weight, value in zip(weights, values, strict=True)))
    return torch.cat(results)


def convolution_of(x, psi, pairs, i):
    """1/|supp(i)| Σ_j ψ_ij ⊙ x_j [D]."""
    rows = [row for row in range(pairs.num_pairs) if pairs.receiver[row] == i]
    return sum(psi[row] * x[pairs.sender[row]] for row in rows) / len(rows)


def modulated_of(gates, x, psi, pairs, i):
    """The gate of every pair formed."""
    query, key = torch.tanh(gates.query(x)), torch.tanh(gates.key(x))
    open_by = torch.stack([1 + query[i] * key[pairs.sender[row]] for row in range(pairs.num_pairs)])
    return convolution_of(x, open_by * psi, pairs, i)


def summed_slowly(convolution, mixing, layer, x, psi, pairs, i):
    """What degree scaler and projection read at node i."""
    channels = convolution.channels
    if mixing == "modulated":
        return modulated_of(channels, x, psi, pairs, i)
    if mixing == "parallel":
        convolved = convolution_of(x, psi[:, : x.shape[1]], pairs, i)
        return torch.cat([convolved, attention_of(channels.heads, x, psi[:, x.shape[1] :], pairs, i)])
    return attention_of(channels, x, psi, pairs, i) if layer == 1 else convolution_of(x, psi, pairs, i)


@pytest.mark.parametrize("support", ["global", 2])
@pytest.mark.parametrize("layer", [0, 1])
@every_mixing
def test_convolutions_equal_a_loop_over_pairs(mixing, layer, support):
    model = small(mixing, support=support)
    batch, convolution = model.prepare(molecules(4, 6)), model.blocks[layer].convolution
    channels = 2 if mixing == "turns" and layer == 1 else 10 if mixing == "parallel" else 8
    x = torch.randn(10, 8, requires_grad=True)
    psi = torch.randn(batch.pairs.num_pairs, channels, requires_grad=True)
    found = convolution(x, KernelValues(psi, None), batch.pairs, batch.degree)
    sums = [summed_slowly(convolution, mixing, layer, x, psi, batch.pairs, i) for i in range(10)]
    scaler = convolution.degree_scaler
    scaled = torch.stack(
        [z * scaler.theta1 + d.sqrt() * z * scaler.theta2 for z, d in zip(sums, batch.degree, strict=True)]
    )
    expected = convolution.projection(scaled)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    inputs, direction = [x, psi, *convolution.parameters()], torch.randn_like(found)
    ours, theirs = (torch.autograd.grad((y * direction).sum(), inputs) for y in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@every_mixing
def test_blocks_read_the_kernels_of_their_layer(mixing):
    model = small(mixing).eval()
    batch = model.prepare(molecules(5, 7))
    states = model.input_states(batch)
    for layer in range(model.depth):
        states = model.layer_states(layer, states, batch)
    torch.testing.assert_close(states, model.node_states(batch), rtol=0, atol=1e-12)


@pytest.mark.parametrize("support", ["global", 2])
@pytest.mark.parametrize("encoding", sorted(COORDINATES))
@every_mixing
def test_every_coordinate_and_support_trains(mixing, encoding, support):
    model = small(mixing, encoding=encoding, support=support).train()
    model(molecules(5, 9, 1)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert torch.isfinite(model.eval()(molecules(5, 9, 1))).all()


@every_mixing
def test_renumbering_changes_nothing(mixing):
    model, data = small(mixing, support=3).eval(), molecules(11)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(1))
    moved = data.clone()
    moved.x, moved.edge_index = data.x[order], order.argsort()[data.edge_index]
    torch.testing.assert_close(model(moved), model(data), rtol=0, atol=1e-11)


@pytest.mark.parametrize("support", ["global", 2])
@every_mixing
def test_padding_changes_nothing(mixing, support):
    model = small(mixing, support=support)
    wide, batch = padded_and_plain(model, torch.tensor([2, 0, 3]))
    found, expected = model(wide)[:3], model(batch)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
    parameters = list(model.parameters())
    ours, theirs = (torch.autograd.grad(y.square().sum(), parameters) for y in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(model.eval()(wide)[:3], model.eval()(batch), rtol=0, atol=1e-11)


@pytest.mark.parametrize("mixing", ["parallel", "modulated"])
def test_it_begins_as_a_ckgcn(mixing):
    """Without its attention, whose part of the projection or whose queries are zero at first."""
    model = small(mixing, drawn=False)
    values = {name: getattr(model.recipe, name) for name in ("node", "edge", "head", "width", "blocks", "steps")}
    ckgcn = CKGCN(replace(recipe("zinc").model, **values, node_steps=5, kernel=KernelRecipe())).double()
    state = model.state_dict()
    # ψ is the first channels of the kernel's last stage, and the convolution the first ones that a block projects.
    cut = {name: state[name][tuple(slice(size) for size in value.shape)] for name, value in ckgcn.state_dict().items()}
    ckgcn.load_state_dict(cut)
    data = molecules(5, 8, 11)
    torch.testing.assert_close(model(data), ckgcn(data), rtol=0, atol=1e-13)
    model(data).sum().backward()
    moved = [block.convolution.projection.weight.grad[:, 8:] for block in model.blocks]
    moved = moved if mixing == "parallel" else [block.convolution.channels.query.weight.grad for block in model.blocks]
    assert all(gradient.abs().max() > 1e-8 for gradient in moved)


def test_attention_that_reads_no_content_is_a_constrained_kernel():
    """Without queries, α is the softmax of what the kernel says, as under the constraint "softmax"."""
    model = small("turns")
    block, batch = model.blocks[1], model.prepare(molecules(5, 7))
    torch.nn.init.zeros_(block.convolution.channels.query.weight)
    torch.nn.init.zeros_(block.convolution.channels.query.bias)
    x, bias = torch.randn(12, 8), torch.randn(batch.pairs.num_pairs, 2)
    constrained = model.kernel.attention
    constrained.constraint = "softmax"
    summed = super(type(block.convolution), block.convolution).summed(
        x, constrained.constrain(bias, batch.pairs), batch.pairs
    )
    expected = block.convolution.projected(summed, batch.degree)
    found = block.convolution(x, KernelValues(bias, None), batch.pairs, batch.degree)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


def test_the_modulated_sparse_global_form_is_exact():
    dense = small("modulated").train()
    sparse = Hybrid(replace(dense.recipe, support="sparse_global")).double().train()
    sparse.load_state_dict(dense.state_dict())
    data = molecules(20, 35, 6)
    torch.testing.assert_close(sparse(data), dense(data), rtol=1e-10, atol=1e-10)


@every_mixing
def test_accelerated_equals_plain(mixing):
    model, data = small(mixing).train(), molecules(5, 8, 11)
    gradients = []
    for each in (model, accelerate(small(mixing).train(), "cpu")):
        prediction = each(data)
        gradients.append([prediction, *torch.autograd.grad(prediction.square().sum(), list(each.parameters()))])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@every_mixing
def test_dropouts_act_in_training_alone(mixing):
    model, data = small(mixing, attention_dropout=0.5), molecules(6, 9)
    assert not torch.equal(model(data), model(data))
    model.eval()
    torch.testing.assert_close(model(data), model(data), rtol=0, atol=0)
    dropped = small(mixing, kernel=KernelRecipe(dropout=0.5))
    assert not torch.equal(dropped(data), dropped(data))


@every_mixing
def test_reset_parameters_and_components(mixing):
    model = small(mixing)
    with torch.no_grad():
        for value in model.state_dict().values():
            value.fill_(7)
    model.reset_parameters()
    assert not any((value == 7).all() for value in model.state_dict().values())
    components = model.parameters_by_component()
    assert sum(components.values()) == sum(parameter.numel() for parameter in model.parameters())
    assert components["attention"] > 0


def test_refusals():
    for mixing in ("turns", "parallel"):
        with pytest.raises(InputError, match=f"mixing is '{mixing}', whose attention has a score on every pair"):
            small(mixing, support="sparse_global")
    with pytest.raises(InputError, match="blocks is 1, but with mixing 'turns' every second block attends"):
        small("turns", blocks=1)
    with pytest.raises(InputError, match=r"kernel.constraint is 'softmax', but with mixing 'parallel'"):
        small("parallel", kernel=KernelRecipe(constraint="softmax"))
    with pytest.raises(InputError, match="mixing is 'sum': give one of turns, parallel, modulated"):
        small("sum")
    for mixing in MIXINGS:
        with pytest.raises(InputError, match="attention_dropout is 2"):
            small(mixing, attention_dropout=2)
    with pytest.raises(InputError, match="of kind 'hybrid', not of CKGCN"):
        CKGCN.from_recipe("zinc-hybrid")


@pytest.mark.parametrize("name", COLUMNS)
@every_mixing
def test_every_mixing_keeps_the_budget_of_its_data_set(name, mixing):
    chosen = hybrid(name, mixing)
    budget = 100_000 if name in ("mnist", "cifar10") else 500_000
    count = sum(parameter.numel() for parameter in build_model(chosen.model).parameters())
    assert 0.9 * budget < count <= budget
    assert chosen.training == recipe(name).training
    assert chosen.model.kernel == recipe(name).model.kernel
    assert chosen.model.attention_dropout == recipe(f"{name}-grit").model.attention_dropout


def test_names_of_recipes():
    assert {f"{name}-hybrid" for name in COLUMNS} | {f"zinc-hybrid-{mixing}" for mixing in MIXINGS} <= set(RECIPES)
    for name in RECIPES:
        assert recipe(name).name == name
    for mixing in MIXINGS:
        assert recipe(f"zinc-hybrid-{mixing}").model.mixing == mixing


@every_mixing
def test_it_trains_from_its_recipe(mixing):
    torch.set_default_dtype(torch.float32)
    chosen = recipe(f"zinc-hybrid-{mixing}")
    model = replace(chosen.model, width=8, blocks=2, heads=2, head_channels=4, steps=3)
    training = replace(chosen.training, epochs=2, warmup_epochs=0, batch_size=6)
    run = train(replace(chosen, model=model, training=training), data=small_dataset(recipe("zinc")), device="cpu")
    assert run.record.epochs[1].train_loss < run.record.epochs[0].train_loss * 1.5
