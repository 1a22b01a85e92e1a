"""Features averaged over walks, then each node by itself."""

import json
from dataclasses import asdict, replace

import pytest
import torch
from graphs_for_tests import random_edges
from torch_geometric.data import Data

from ckgconv import InputError, recipe
from ckgconv.backends import accelerate, why_not_fused
from ckgconv.nn import propagation
from ckgconv.nn.models import build_model
from ckgconv.nn.propagation import Propagation
from ckgconv.recipe import AttributeRecipe, HeadRecipe, PropagationRecipe
from ckgconv.recipes.values import from_json

pytestmark = pytest.mark.usefixtures("double")

PLAIN = AttributeRecipe("linear", (5,), normalise="rows")
RECIPE = PropagationRecipe(
    width=6,
    order=3,
    dropout=0.5,
    node=replace(PLAIN, dropout=0.5),
    edge=AttributeRecipe("none"),
    head=HeadRecipe("pyramid", "none", layers=1, outputs=3),
    encoding="looped_walks",
    steps=1,
    support=1,
)


def network(**changes) -> Propagation:
    return build_model(replace(RECIPE, **changes)).eval()


def graph(nodes: int = 12, directed: bool = False, weighted: bool = False) -> Data:
    edges = random_edges(nodes, 14, 3, directed)
    weight = torch.rand(edges.shape[1], generator=torch.Generator().manual_seed(1)) + 0.1
    return Data(x=torch.rand(nodes, 5), edge_index=edges, edge_weight=weight if weighted else None)


def adjacency(data: Data) -> torch.Tensor:
    """[N, N] A, row i the senders of receiver i."""
    weight = torch.ones(data.num_edges) if data.edge_weight is None else data.edge_weight
    matrix = torch.zeros(data.num_nodes, data.num_nodes)
    return matrix.index_put_((data.edge_index[1], data.edge_index[0]), weight, accumulate=True)


def looped(data: Data) -> torch.Tensor:
    """[N, N] S of GCN."""
    matrix = adjacency(data) + torch.eye(data.num_nodes)
    return matrix / (matrix.sum(1, keepdim=True) * matrix.sum(0)).sqrt()


def walk(data: Data) -> torch.Tensor:
    """[N, N] M of RRWP."""
    matrix = adjacency(data)
    degree = matrix.sum(1, keepdim=True)
    return matrix / torch.where(degree > 0, degree, 1.0)


def expected(model: Propagation, data: Data, matrix: torch.Tensor) -> torch.Tensor:
    """The equation with one average of walks, [N, N]."""
    scaled = data.x / data.x.sum(1, keepdim=True)
    mean = sum(torch.linalg.matrix_power(matrix, k) for k in range(model.recipe.order + 1)) / (model.recipe.order + 1)
    return model.head(torch.relu(model.node_encoder.linear(mean @ scaled)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("support", [1, "global", "sparse_global"])
def test_equals_the_mean_of_powers_on_every_support(support, directed, weighted):
    model, data = network(support=support), graph(directed=directed, weighted=weighted)
    torch.testing.assert_close(model(data), expected(model, data, looped(data)))


def test_blocks_of_columns_change_nothing(monkeypatch):
    model, data = network(), graph()
    whole = model(data)
    monkeypatch.setattr(propagation, "BLOCK", 2)
    torch.testing.assert_close(model(data), whole)


def test_a_kernel_of_several_walks_is_their_mean():
    data = graph()
    m = walk(data)
    model = network(encoding="rrwp", steps=2, support=2)
    torch.testing.assert_close(model(data), expected(model, data, (m + m @ m) / 2))


def test_two_ways_of_a_directed_graph_count_the_same():
    data = graph(directed=True)
    model = network(encoding="two_way_rrwp", support="sparse_global")
    back = Data(x=data.x, edge_index=data.edge_index.flip(0))
    torch.testing.assert_close(model(data), expected(model, data, (walk(data) + walk(back)) / 2))
    torch.testing.assert_close(model(data), model(back))


def test_types_are_averaged_as_their_one_hot_columns_would_be():
    data = graph()
    types = torch.arange(12).remainder(5)
    embedding = network(node=AttributeRecipe("types", (5,)))
    numbers = network(node=AttributeRecipe("linear", (5,)))
    numbers.head.load_state_dict(embedding.head.state_dict())
    numbers.node_encoder.linear.weight.data = embedding.node_encoder.tables[0].weight.data.T
    numbers.node_encoder.linear.bias.data.zero_()
    one_hot = Data(x=torch.nn.functional.one_hot(types, 5).double(), edge_index=data.edge_index)
    torch.testing.assert_close(
        embedding(Data(x=types.unsqueeze(1), edge_index=data.edge_index)), numbers(one_hot), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_smallest_graphs(nodes):
    model, edges = network(), torch.zeros(2, 0, dtype=torch.int64)
    alone = Data(x=torch.rand(nodes, 5), edge_index=edges)
    hidden = torch.relu(model.node_encoder(alone.x, nodes))
    torch.testing.assert_close(model(alone), model.head(hidden))  # a node without neighbours is its own average


def test_trains_with_dropout_and_its_kernel_has_no_parameters():
    model, data = network().train(), graph()
    assert not torch.equal(model(data), model(data))
    model(data).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert set(model.parameters_by_component()) == {"node_encoder", "head"}


def test_features_of_whole_nodes_are_dropped_before_the_first_convolution():
    model, data = network(node_dropout=0.4), graph(200)
    batch = model.prepare(data)
    ones = torch.ones(200, 2)
    operator = sum(torch.linalg.matrix_power(looped(data), k) for k in range(4)) / 4
    torch.testing.assert_close(model.averaged(ones, batch.pairs), operator @ ones)
    kept = torch.linalg.solve(operator, model.train().averaged(ones, batch.pairs))
    torch.testing.assert_close(kept[:, 0], kept[:, 1])
    dropped = kept[:, 0].abs() < 1e-6
    # On a CPU probabilities are multiples of 2⁻¹⁶.
    torch.testing.assert_close(kept[~dropped], torch.full_like(kept[~dropped], 1 / 0.6), rtol=1e-4, atol=0)
    assert 0.25 < dropped.double().mean() < 0.55


def test_runs_as_it_is_written_on_every_device():
    model, data = network(), graph()
    torch.testing.assert_close(accelerate(model, "cpu")(data), model(data))
    assert "CUDA" in why_not_fused(model, "cpu")


@pytest.mark.parametrize("encoding", ["spd", "rrwp_cycles", "laplacian"])
def test_refusals_say_what_to_choose(encoding):
    with pytest.raises(InputError, match=f"'{encoding}', whose values are no probabilities"):
        network(encoding=encoding, steps=3, support="global")
    with pytest.raises(InputError, match="reads no edge attributes"):
        network(edge=AttributeRecipe("constant"))


def test_recipes_of_the_gated_form_from_before_are_refused():
    values = asdict(recipe("nodes-homophilous"))
    values["model"] = {**values["model"], "layers": 10}
    del values["model"]["order"]
    with pytest.raises(InputError, match=r"recipe.json.*layers"):
        from_json(json.dumps(values), "recipe.json")
