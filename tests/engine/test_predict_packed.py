"""Predictions of packed graphs do not depend on the batches they are predicted in."""

from types import SimpleNamespace

import pytest
import torch
from small_data import small_dataset
from small_models import BESIDE, SMALL, of_recipe

from ckgconv import predict_packed, train
from ckgconv.engine import predict_packed as module
from ckgconv.engine.predict_molecules import embed

MODELS = {"graphs": SMALL["ckgcn"]["hops"], "features of graphs": BESIDE, "hybrid": SMALL["hybrid"]["parallel"]}


@pytest.fixture(params=MODELS)
def trained(request):
    chosen = of_recipe(MODELS[request.param], epochs=1)
    data = small_dataset(chosen)
    return train(chosen, data=data, device="cpu", test=False), data


def test_batches_end_at_a_number_of_graphs_or_of_pairs(monkeypatch):
    data = small_dataset(of_recipe(MODELS["graphs"]), graphs=40)
    pairs = data.node_ptr.diff() ** 2
    monkeypatch.setattr(module, "MOST_PAIRS", 3 * int(pairs.max()))
    found = list(module.graph_batches(data, 4))
    assert torch.equal(torch.cat(found), torch.arange(40))
    assert max(len(graphs) for graphs in found) == 4
    assert max(int(pairs[graphs].sum()) for graphs in found) <= 3 * int(pairs.max())
    monkeypatch.setattr(module, "MOST_PAIRS", 1)
    assert [len(graphs) for graphs in module.graph_batches(data, 4)] == [1] * 40


def test_predictions_and_embeddings_are_those_of_any_batch(trained, monkeypatch):
    run, data = trained
    every = run.learner.batch(torch.arange(data.num_graphs), data)
    found = predict_packed(run, data)
    torch.testing.assert_close(found.embeddings, embed(run, every))
    for size in (1, 7, 100):
        monkeypatch.setattr(module, "graphs_at_once", lambda run, size=size: size)
        other = predict_packed(run, data)
        assert torch.equal(other.graph, found.graph)
        torch.testing.assert_close(other.values, found.values)
        torch.testing.assert_close(other.embeddings, found.embeddings)


def test_the_network_is_evaluated_once_for_each_batch(trained, monkeypatch):
    run, data = trained
    calls, evaluated = [], run.model.node_states
    monkeypatch.setattr(run.model, "node_states", lambda batch: calls.append(batch.num_graphs) or evaluated(batch))
    ticks = []
    predict_packed(run, data, ticks.append)
    assert calls == ticks
    assert sum(ticks) == data.num_graphs


def test_no_graphs_have_no_predictions(trained):
    run, data = trained
    none = torch.zeros(0, dtype=torch.int64)
    found = predict_packed(run, data.subset(dict.fromkeys(("train", "val", "test"), none)))
    assert (found.graph.shape, found.values.shape) == ((0,), (0, 1))
    assert found.embeddings.shape == (0, run.model.head_width)


@pytest.mark.parametrize(
    ("device", "trained_by", "most"), [("cpu", 3, 3), ("cuda", 3, module.GRAPHS_ON_A_GPU), ("cuda", 5000, 5000)]
)
def test_batches_fill_a_gpu(device, trained_by, most):
    fabric = SimpleNamespace(device=torch.device(device))
    run = SimpleNamespace(recipe=of_recipe(BESIDE, batch_size=trained_by), learner=SimpleNamespace(fabric=fabric))
    assert module.graphs_at_once(run) == most
