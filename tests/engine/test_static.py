"""Batches of static capacity: padding changes no number of a step.

Covers `ckgconv.backends.cuda.batch`.
"""

from dataclasses import replace

import pytest
import torch
from small_data import small_dataset

from ckgconv.data import load
from ckgconv.engine.epoch import eager_step, graphs_of_evaluation, predict_batch
from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import source_of
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.step import evaluation_step, training_step
from ckgconv.engine.window import Window
from ckgconv.nn import CKGCN
from ckgconv.ops.convolution import naive
from ckgconv.recipe import DataRecipe
from ckgconv.recipes import recipe, with_value


def learner_of(name, data, settings=()):
    """A small network of a recipe in float64 without dropout, so that two ways of computing can be compared."""
    chosen = recipe(name)
    for setting in settings:
        chosen = with_value(chosen, setting)
    for setting in ("model.width=16", "model.blocks=2", "model.dropout=0", "model.kernel.dropout=0"):
        chosen = with_value(chosen, setting)
    chosen = with_value(chosen, "model.kernel.mlp_dropout=0")
    torch.manual_seed(3)
    return make_learner(make_fabric("cpu", "64"), CKGCN.from_recipe(chosen).double(), data, chosen)


CASES = [(name, ()) for name in ("zinc", "mnist", "pattern", "cluster", "peptides-func")]
CASES += [
    ("zinc", ("model.support=2",)),
    ("zinc", ("model.encoding=spd", "model.steps=5")),
    ("zinc", ("model.encoding=rd",)),
    ("zinc", ("model.encoding=heat", "model.steps=5", "training.loss=huber")),
    ("pattern", ("model.encoding=pair_rwse", "model.support=1")),
    ("zinc", ("model.kernel.constraint=softmax", "model.norm=layer")),
    ("zinc", ("model.support=sparse_global", "model.steps=3")),
    ("pattern", ("model.support=sparse_global", "model.steps=1", "model.kernel.constraint=softmax")),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_padded_step_equals_the_unpadded_one(name, settings, weighted):
    data = small_dataset(recipe(name))
    if weighted:
        weights = torch.rand(data.edge_index.shape[1], generator=torch.Generator().manual_seed(5))
        data = replace(data, edge_weight=weights + 0.5)
        if learner_of(name, data, settings).model.encoding.support in ("global", "sparse_global"):
            data.edge_weight[::7] = 0
    plain, padded = learner_of(name, data, settings), learner_of(name, data, settings)
    source = source_of(padded)
    numbers = torch.tensor([2, -1, 0, 3])
    graphs = numbers[numbers >= 0]
    capacity = source.sizes.needed(torch.tensor([[1, 2, 3, 4]]))
    for _ in range(3):
        loss = eager_step(plain, graphs)
        found: list[torch.Tensor] = []
        training_step(padded, source.sample(data, numbers, capacity, "train"), found.append)
        assert float(found[0]) == pytest.approx(loss, rel=1e-9)
    for (key, mine), theirs in zip(padded.model.state_dict().items(), plain.model.state_dict().values(), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-7, atol=1e-9), key
    padded.model.eval()
    batch = plain.batch(graphs)
    expected = predict_batch(plain, batch)
    evaluation_step(padded, source.sample(data, numbers, capacity, "train"), found.append)
    predicted = found[1][: expected.shape[0]] if data.node_targets else found[1][numbers >= 0]
    assert torch.allclose(predicted, expected, rtol=1e-7, atol=1e-9)


def test_steps_with_edges_outside_the_support_are_not_captured():
    data = small_dataset(recipe("zinc"))
    weights = torch.ones(data.edge_index.shape[1])
    assert learner_of("zinc", replace(data, edge_weight=weights), ["model.support=2"]).keeps_edges
    weights[3] = 0
    weighted = replace(data, edge_weight=weights)
    assert not learner_of("zinc", weighted, ["model.support=2"]).keeps_edges
    assert learner_of("zinc", weighted).keeps_edges
    assert not learner_of("zinc", data, ["model.support=0"]).keeps_edges


@pytest.mark.parametrize("support", ["global", "2", "sparse_global"])
def test_padding_does_not_grow_from_block_to_block(support, monkeypatch):
    """Padding is summed with weight 0 like every other row, so it must stay finite: 0 · ∞ is NaN."""

    def plain(x, psi, receiver, sender, support_size, *lists):
        return naive.scaled_convolution(x, psi, receiver, sender, support_size)

    monkeypatch.setattr("ckgconv.nn.convolution.scaled_convolution", plain)
    chosen = with_value(with_value(recipe("zinc"), f"model.support={support}"), "model.blocks=24")
    data = small_dataset(chosen, graphs=60)
    torch.manual_seed(0)
    learner = make_learner(make_fabric("cpu", "32"), CKGCN.from_recipe(chosen), data, chosen)
    source = source_of(learner)
    capacity = source.sizes.needed(torch.arange(50).unsqueeze(0))
    numbers = torch.full((50,), -1)
    numbers[:2] = torch.tensor([4, 7])
    learner.model.train()
    states = learner.model.node_states(source.sample(data, numbers, capacity, "train").batch)
    assert states.abs().max() < 1e3


@pytest.mark.parametrize("settings", [("model.support=2",), ("model.support=sparse_global", "model.steps=3"), ()])
def test_pairs_are_counted_as_they_are_stored(settings):
    learner = learner_of("zinc", small_dataset(recipe("zinc")), settings)
    assert learner.stored_pairs == int(source_of(learner).sizes.pairs.sum())


def test_capacity_holds_every_batch_and_one_row_of_padding():
    data = load(DataRecipe("zinc", limit=20), None)
    learner = learner_of("zinc", data)
    batches = torch.tensor([[0, 1, 2], [3, 4, -1]])
    needed = source_of(learner).sizes.needed(batches)
    nodes = data.node_ptr.diff()
    assert needed.nodes == max(int(nodes[:3].sum()), int(nodes[3:5].sum())) + 1
    assert needed.pairs == max(int((nodes[:3] ** 2).sum()), int((nodes[3:5] ** 2).sum())) + 1
    assert needed.graphs == 3
    assert needed.holds(source_of(learner).sizes.needed(batches[1:]))
    assert not source_of(learner).sizes.needed(batches[1:, :2]).holds(needed)


@pytest.mark.parametrize("name", ["zinc", "mnist", "pattern"])
def test_a_batch_from_a_window_equals_that_of_the_data_set(name):
    data = small_dataset(recipe(name))
    source = source_of(learner_of(name, data))
    capacity = source.sizes.needed(torch.tensor([[1, 2, 3, 4]]))
    window = Window(data, capacity, torch.device("cpu"))
    for numbers in ([1, 2, 3, 4], [4, 0, -1, -1], [2, 1, 3, -1]):
        window.load(torch.tensor(numbers))
        inside = torch.tensor([place if number >= 0 else -1 for place, number in enumerate(numbers)])
        found = source.sample(window.store, inside, capacity, "train")
        expected = source.sample(data, torch.tensor(numbers), capacity, "train")
        nodes, rows = int(expected.batch.node_filled), int(expected.batch.pairs.filled)
        assert torch.equal(found.batch.pairs.coordinates[:rows], expected.batch.pairs.coordinates[:rows])
        assert torch.equal(found.batch.node_features[:nodes], expected.batch.node_features[:nodes])
        assert torch.allclose(found.target, expected.target, equal_nan=True)
        assert torch.equal(found.batch.node_ptr, expected.batch.node_ptr)
        assert torch.equal(found.batch.degree, expected.batch.degree)


def test_an_evaluation_step_takes_as_many_graphs_as_fill_a_device():
    learner = learner_of("zinc", load(DataRecipe("zinc", limit=300)))
    graphs = learner.data.val
    at_once = graphs_of_evaluation(learner, graphs)
    assert 32 < at_once < len(graphs)
    assert graphs_of_evaluation(learner, graphs[:40]) == 40
    assert graphs_of_evaluation(learner, graphs[:5]) == 32
    assert graphs_of_evaluation(learner, graphs[:0]) == 32
