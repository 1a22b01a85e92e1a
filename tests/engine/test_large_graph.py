"""Excerpts of a large graph hold what all of it holds, and layer by layer its states are those of one forward pass.

Covers `ckgconv.engine.layerwise`.
"""

import pytest
import torch
from large_data import large_dataset, large_recipe, learner_of

from ckgconv import InputError
from ckgconv.engine import large_graph, layerwise
from ckgconv.engine.sampling import own_graph
from ckgconv.pairs import rows
from ckgconv.pairs.rows import StoredRows, WalkedRows
from ckgconv.recipe import KernelRecipe, SamplingRecipe

NEIGHBOURS = SamplingRecipe("neighbours")


def trained_a_little(learner):
    """Running statistics that are not those of a new network."""
    generator = torch.Generator().manual_seed(2)
    for name, value in learner.model.state_dict().items():
        if "running" in name:
            value.add_(0.3 * torch.rand(value.shape, generator=generator, dtype=value.dtype))
    return learner


@pytest.mark.parametrize(("precision", "tolerance"), [("64", 1e-12), ("32", 1e-6)])
@pytest.mark.parametrize(
    "model",
    [
        {"support": 1, "steps": 2},
        {"support": 2, "steps": 2, "blocks": 3},
        {"support": 1, "steps": 3, "blocks": 1, "degree_scaler": "coordinates"},
        {"support": 2, "steps": 1, "kernel": KernelRecipe(blocks=2, constraint="softmax"), "norm": "layer"},
        {"support": 1, "steps": 2, "flow": "target_to_source", "combine": "concatenate"},
    ],
)
@pytest.mark.parametrize("stored", [True, False])
def test_states_are_those_of_the_whole_graph(model, precision, tolerance, stored, monkeypatch):
    monkeypatch.setattr(rows, "WALKED", 500)  # several chunks
    monkeypatch.setattr(layerwise, "NODES", 32)
    if not stored:
        monkeypatch.setattr(large_graph, "SHARE", 0.0)
    data = large_dataset(graphs=2, edge_types=4)
    learner = trained_a_little(learner_of(large_recipe(NEIGHBOURS, edge_types=4, **model), data, precision))
    graph = own_graph(learner)
    assert type(graph.rows) is (StoredRows if stored else WalkedRows)
    learner.model.eval()
    wanted = torch.arange(0, len(data.x), 3)
    with torch.no_grad():
        whole = learner.model.prepare(learner.batch(torch.arange(2)))
        expected = learner.model.node_states(whole)[wanted]
        outputs = learner.model(whole)[wanted]
    found = layerwise.node_states(learner, graph, wanted)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(1.0, float(expected.abs().max())))
    predicted = layerwise.predictions(learner, found)
    torch.testing.assert_close(predicted, outputs, rtol=0, atol=tolerance * max(1.0, float(outputs.abs().max())))
    assert layerwise.node_states(learner, graph, wanted[:0]).shape == (0, 8)


def test_an_excerpt_has_degrees_coordinates_and_edges_of_the_whole_graph():
    data = large_dataset(edge_types=4)
    learner = learner_of(large_recipe(NEIGHBOURS, edge_types=4, support=2, steps=3), data)
    graph = own_graph(learner)
    whole = learner.model.prepare(learner.batch(torch.arange(1)))
    receivers = torch.tensor([3, 8, 40, 89])
    found = graph.rows.rows(receivers)
    row, entry = found.all_entries()
    excerpt = graph.excerpt(receivers, found, row[::3], entry[::3])  # every third pair
    batch, nodes = excerpt.batch, excerpt.nodes
    assert torch.equal(nodes[excerpt.receivers], receivers)
    assert torch.equal(batch.degree, whole.degree[nodes])
    assert torch.equal(batch.node_features, whole.node_features[nodes])
    torch.testing.assert_close(batch.node_encoding, whole.node_encoding[nodes], rtol=0, atol=1e-14)
    assert torch.equal(batch.node_weight.nonzero().squeeze(-1), excerpt.receivers)
    assert torch.equal(batch.pairs.support_size, batch.pairs.rowptr.diff().double())
    key = whole.pairs.receiver * len(data.x) + whole.pairs.sender
    wanted = nodes[batch.pairs.receiver] * len(data.x) + nodes[batch.pairs.sender]
    rows_of_whole = torch.searchsorted(key, wanted)
    assert torch.equal(key[rows_of_whole], wanted)
    torch.testing.assert_close(batch.pairs.coordinates, whole.pairs.coordinates[rows_of_whole], rtol=0, atol=1e-14)
    size = whole.pairs.support_size[whole.pairs.receiver].unsqueeze(-1)
    expected = (whole.pairs.coordinates * size)[rows_of_whole]
    torch.testing.assert_close(batch.pairs.rescaled, expected, rtol=0, atol=1e-12)
    there = sorted(
        (int(key[line]), int(kind)) for line, kind in zip(whole.edge_row, whole.edge_features[:, 0], strict=True)
    )
    here = sorted(
        (int(wanted[line]), int(kind)) for line, kind in zip(batch.edge_row, batch.edge_features[:, 0], strict=True)
    )
    assert here == [each for each in there if each[0] in set(wanted.tolist())]
    assert len(here) > 0


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ({"support": "global"}, "choose a number of hops"),
        ({"support": "sparse_global"}, "choose a number of hops"),
        ({"support": 2, "encoding": "spd", "steps": 2}, "choose 'rrwp'"),
    ],
)
def test_models_that_need_the_whole_graph_are_refused(model, sentence):
    learner = learner_of(large_recipe(NEIGHBOURS, **model), large_dataset())
    with pytest.raises(InputError, match=sentence):
        own_graph(learner)


def test_a_model_without_layers_of_its_own_is_refused(monkeypatch):
    learner = learner_of(large_recipe(NEIGHBOURS), large_dataset())
    monkeypatch.setattr(type(learner.model), "depth", 0)
    with pytest.raises(InputError, match="cannot be run layer by layer"):
        own_graph(learner)


def test_states_move_to_the_host_where_the_device_has_no_room(monkeypatch):
    learner = learner_of(large_recipe(NEIGHBOURS), large_dataset())
    graph = own_graph(learner)
    monkeypatch.setattr(layerwise, "free_bytes", lambda device: 0)
    assert layerwise._where(learner, graph) == torch.device("cpu")
