"""Node tasks on one large graph: only the nodes of a split count in it.

Covers `ckgconv.engine.predict_packed`.
"""

import math
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from ckgconv import InputError, predict_packed, recipe, train
from ckgconv.data import PackedDataset, from_pyg_masks
from ckgconv.engine.baseline import majority_predictor, mean_predictor
from ckgconv.engine.run_data import check_data
from ckgconv.recipe import Recipe
from ckgconv.recipes.nodes import for_graph
from ckgconv.tasks.scaling import fitted

NODES = 60


def small(loss: str = "cross_entropy", metric: str = "accuracy", outputs: int = 3, **training) -> Recipe:
    chosen = recipe("large-sbm")
    model = replace(chosen.model, width=8, head=replace(chosen.model.head, outputs=outputs))
    settings = {"epochs": 2, "warmup_epochs": 0, "loss": loss, "metric": metric, **training}
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


def graph(y: torch.Tensor) -> Data:
    """A ring with chords; nodes 0 … 19 train, 20 … 39 validate, 40 … 54 test, the rest count nowhere."""
    nodes = torch.arange(NODES)
    one_way = torch.cat([torch.stack([nodes, (nodes + jump) % NODES]) for jump in (1, 7)], dim=1)
    masks = {
        "train_mask": nodes < 20,
        "val_mask": (nodes >= 20) & (nodes < 40),
        "test_mask": (nodes >= 40) & (nodes < 55),
    }
    x = torch.rand(NODES, 6, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=torch.cat([one_way, one_way.flip(0)], dim=1), y=y, **masks)


def dataset(y: torch.Tensor | None = None) -> PackedDataset:
    return from_pyg_masks(graph(torch.arange(NODES) % 3 if y is None else y))


def test_only_the_nodes_of_a_split_count_in_it():
    y = torch.arange(NODES) % 3
    elsewhere, here = y.clone(), y.clone()
    elsewhere[20:] = (y[20:] + 1) % 3
    here[:20] = (y[:20] + 1) % 3
    runs = [train(small(), data=dataset(each), device="cpu") for each in (y, elsewhere, here)]
    losses = [[entry.train_loss for entry in run.record.epochs] for run in runs]
    assert losses[0] == losses[1] != losses[2]
    predicted = predict_packed(runs[0], dataset()).classes
    for name, rows in (("train", slice(0, 20)), ("val", slice(20, 40)), ("test", slice(40, 55))):
        assert runs[0].evaluate(name) == pytest.approx((predicted[rows] == y[rows]).double().mean().item())


def test_edge_weights_reach_the_network():
    one, other = graph(torch.arange(NODES) % 3), graph(torch.arange(NODES) % 3)
    one.edge_weight = torch.ones(one.num_edges)
    other.edge_weight = torch.rand(other.num_edges, generator=torch.Generator().manual_seed(1)) + 0.1
    given = [dataset(), from_pyg_masks(one), from_pyg_masks(other)]
    losses = [[entry.train_loss for entry in train(small(), data=each, device="cpu").record.epochs] for each in given]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize(
    ("loss", "metric", "outputs", "y"),
    [
        ("l1", "mae", 2, torch.rand(NODES, 2)),
        ("l1", "mae", 1, torch.arange(NODES) - 5),
        ("binary", "auroc", 2, torch.arange(2 * NODES).view(NODES, 2) // 2 % 2),
        ("weighted_binary", "sbm_accuracy", 1, torch.arange(NODES) % 2),
        ("weighted_cross_entropy", "sbm_accuracy", 3, torch.arange(NODES) % 3),
    ],
)
def test_every_kind_of_node_target_trains(loss, metric, outputs, y):
    run = train(small(loss, metric, outputs), data=dataset(y), device="cpu")
    assert math.isfinite(run.record.epochs[-1].train_loss)
    assert math.isfinite(run.record.best.test)
    found = predict_packed(run, dataset(y))
    assert found.values.shape == (NODES, outputs)
    assert (found.classes is not None) == ("sbm" in metric)
    if loss != "l1":
        assert 0 <= found.values.min() <= found.values.max() <= 1


def test_scale_and_baselines_are_those_of_the_nodes_of_their_split():
    y = torch.arange(NODES).float()
    run = train(small("l1", "mae", 1, epochs=1, scale_targets=True), data=dataset(y), device="cpu")
    assert run.learner.scale.mean.tolist() == fitted(y[:20]).mean.tolist() == [9.5]
    assert mean_predictor(run) == pytest.approx((y[40:55] - 9.5).mean().item())
    assert majority_predictor(run) is None
    classes = torch.arange(NODES) % 3
    classes[:12] = 2
    run = train(small(epochs=1), data=dataset(classes), device="cpu")
    assert majority_predictor(run) == pytest.approx((classes[40:55] == 2).double().mean().item())
    assert mean_predictor(run) is None
    one = train(small("weighted_binary", "accuracy", 1, epochs=1), data=dataset((classes == 2).long()), device="cpu")
    assert majority_predictor(one) == pytest.approx((classes[40:55] == 2).double().mean().item())


def test_splits_without_nodes_and_more_processes_than_graphs_are_refused():
    data = dataset()
    with pytest.raises(InputError, match="has no node in split 'val'"):
        train(small(), data=replace(data, node_split=data.node_split.clamp(max=0)), device="cpu")
    with pytest.raises(InputError, match="1 training graphs for 2 processes"):
        check_data(data, small(), 2, "data given")
    untested = replace(data, node_split=data.node_split.where(data.node_split < 2, -1))
    run = train(small(epochs=1), data=untested, device="cpu")
    assert run.record.best.test is None
    assert majority_predictor(run) is None


@pytest.mark.parametrize("name", ["nodes-homophilous", "nodes-heterophilous", "nodes-directed"])
@pytest.mark.parametrize(
    ("y", "task"),
    [
        (torch.arange(NODES) % 3, ("cross_entropy", "accuracy", 3)),
        (torch.arange(2 * NODES).view(NODES, 2) // 2 % 2, ("binary", "auroc", 2)),
        (torch.rand(NODES), ("l1", "mae", 1)),
    ],
)
def test_recipes_for_nodes_fit_any_graph(name, y, task):
    data = dataset(y)
    chosen = for_graph(recipe(name), data)
    assert (chosen.training.loss, chosen.training.metric, chosen.model.head.outputs) == task
    assert chosen.model.node.sizes == (6,)
    assert chosen == for_graph(recipe(name), graph(y))
    run = train(replace(chosen, training=replace(chosen.training, epochs=2, warmup_epochs=0)), data=data, device="cpu")
    assert math.isfinite(run.record.best.test)
    assert predict_packed(run, data).values.shape == (NODES, task[2])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_recipe_for_few_labels_fits_the_smallest_graph_and_stops_early(weighted):
    """A node for each split; the third has no neighbour."""
    tiny = Data(
        x=torch.eye(3),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        edge_weight=torch.tensor([0.5, 2.0]) if weighted else None,
        y=torch.tensor([0, 1, 1]),
        **{f"{name}_mask": torch.arange(3) == place for place, name in enumerate(("train", "val", "test"))},
    )
    chosen = for_graph(recipe("nodes-homophilous"), tiny)
    assert chosen.training.patience == 200
    chosen = replace(chosen, training=replace(chosen.training, epochs=400, patience=5))
    run = train(chosen, data=from_pyg_masks(tiny), device="cpu")
    assert len(run.record.epochs) == run.record.best.epoch + 6 < 400
    assert predict_packed(run, from_pyg_masks(tiny)).values.isfinite().all()


def test_a_recipe_keeps_a_task_that_suits_the_targets():
    binary = for_graph(recipe("nodes-heterophilous"), graph(torch.arange(NODES) % 2))
    assert (binary.training.loss, binary.training.metric, binary.model.head.outputs) == ("binary", "auroc", 1)
    classes = for_graph(recipe("nodes-homophilous"), graph(torch.arange(NODES) % 2))
    assert (classes.training.loss, classes.model.head.outputs) == ("cross_entropy", 2)


def test_graphs_that_a_recipe_cannot_fit_are_refused():
    with pytest.raises(InputError, match="y is a NoneType, not a tensor: give a target per node"):
        for_graph(recipe("nodes-homophilous"), Data(x=torch.rand(3, 2)))
    types = Data(x=torch.zeros(3, 1, dtype=torch.int64), y=torch.zeros(3).long())
    with pytest.raises(InputError, match="give floating features"):
        for_graph(recipe("nodes-homophilous"), types)
    with pytest.raises(InputError, match="'zinc' reads node attributes of kind 'types'"):
        for_graph(recipe("zinc"), graph(torch.arange(NODES) % 2))
