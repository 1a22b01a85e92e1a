"""Predictions first, then walks, and a gate for every radius."""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import random_edges
from torch_geometric.data import Data

from ckgconv import InputError
from ckgconv.backends import accelerate, why_not_fused
from ckgconv.nn.models import build_model
from ckgconv.nn.propagation import Propagation
from ckgconv.recipe import AttributeRecipe, HeadRecipe, PropagationRecipe

pytestmark = pytest.mark.usefixtures("double")

RECIPE = PropagationRecipe(
    width=6,
    layers=3,
    dropout=0.5,
    node=AttributeRecipe("linear", (5,), normalise="rows", dropout=0.5),
    edge=AttributeRecipe("none"),
    head=HeadRecipe("pyramid", "none", layers=1, outputs=3),
    steps=2,
    support=2,
)


def network(**changes) -> Propagation:
    """With kernels that differ between layers and walks."""
    model = build_model(replace(RECIPE, **changes)).eval()
    torch.nn.init.normal_(model.kernel.theta)
    return model


def graph(nodes: int = 12, directed: bool = False) -> Data:
    return Data(x=torch.rand(nodes, 5), edge_index=random_edges(nodes, 14, 3, directed))


def walk(data: Data) -> torch.Tensor:
    """[N, N] M, row i the senders of receiver i."""
    matrix = torch.zeros(data.num_nodes, data.num_nodes)
    matrix.index_put_((data.edge_index[1], data.edge_index[0]), torch.ones(data.num_edges), accumulate=True)
    return matrix / matrix.sum(1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("support", [2, "global", "sparse_global"])
def test_equals_its_equation_on_every_support(support, directed):
    model, data = network(support=support), graph(directed=directed)
    m = walk(data)
    walks = torch.stack([torch.eye(len(m)), m, m @ m])
    hidden = torch.relu(model.node_encoder.linear(data.x / data.x.sum(1, keepdim=True)))
    states = [model.predictor(hidden)]
    for theta in model.kernel.theta:
        states.append(torch.einsum("k,kij,jc->ic", theta.softmax(0), walks, states[-1]))
    (a,), c = model.gate.weight, model.gate.bias
    expected = sum(torch.sigmoid(z @ a + c).unsqueeze(-1) * z for z in states)
    torch.testing.assert_close(model(data), expected)


def test_its_kernels_average():
    """Features that all nodes share stay as they are, whatever the kernels, where every walk can go on."""
    model, ring = network(), torch.arange(9)
    edges = torch.cat([torch.stack([ring, ring.roll(1)]), torch.stack([ring.roll(1), ring])], dim=1)
    data = Data(x=torch.rand(1, 5).expand(9, 5), edge_index=edges)
    states = model.node_states(model.prepare(data))
    alone = model.predictor(torch.relu(model.node_encoder(data.x, 9)))
    radii = RECIPE.layers + 1
    torch.testing.assert_close(states, radii * model.gate(alone).sigmoid() * alone)


def test_two_ways_of_a_directed_graph_are_told_apart():
    model, data = network(encoding="two_way_rrwp", support="sparse_global"), graph(directed=True)
    back = Data(x=data.x, edge_index=data.edge_index.flip(0))
    assert not torch.allclose(model(data), model(back))
    swapped = network(encoding="two_way_rrwp", support="sparse_global")
    swapped.load_state_dict(model.state_dict())
    swapped.kernel.theta.data = model.kernel.theta.data[:, [0, 3, 4, 1, 2]]
    torch.testing.assert_close(model(data), swapped(back))


def test_trains_with_dropout_and_is_reset():
    model, data = network().train(), graph()
    assert not torch.equal(model(data), model(data))
    model(data).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.reset_parameters()
    assert (model.kernel.theta == 0).all()


def test_whole_nodes_are_dropped_before_the_first_walk():
    plain = AttributeRecipe("linear", (5,), normalise="rows")
    model, data = network(node_dropout=0.4, dropout=0.0, node=plain), graph(200)
    whole = model.predictor(torch.relu(model.node_encoder(data.x, 200)))
    seen = []
    model._gated = lambda z: seen.append(z) or z
    model(data)
    assert torch.equal(seen[0], whole)
    seen.clear()
    model.train()(data)
    ratio = seen[0] / whole
    dropped = (ratio == 0).all(1)
    # On a CPU probabilities are multiples of 2⁻¹⁶.
    torch.testing.assert_close(ratio[~dropped], torch.full_like(ratio[~dropped], 1 / 0.6), rtol=1e-4, atol=0)
    assert 0.25 < dropped.double().mean() < 0.55


def test_runs_as_it_is_written_on_every_device():
    model, data = network(), graph()
    torch.testing.assert_close(accelerate(model, "cpu")(data), model(data))
    assert "CUDA" in why_not_fused(model, "cpu")


def test_refusals_say_what_to_choose():
    with pytest.raises(InputError, match="'spd', whose values are no probabilities"):
        network(encoding="spd", support="global")
    with pytest.raises(InputError, match="reads no edge attributes"):
        network(edge=AttributeRecipe("constant"))
