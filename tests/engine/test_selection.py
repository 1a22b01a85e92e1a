"""Which epoch a run keeps: by metric, by loss, or by metric and then loss."""

import json
import math
from dataclasses import replace

import pytest
import torch
from interruption import Interruption, StopAfter
from small_data import small_dataset
from torch.nn import functional as F

from ckgconv import InputError, recipe, train
from ckgconv.engine.epoch import loss_on
from ckgconv.engine.recipe_checks import check_run
from ckgconv.engine.record import Best, Epoch, Record
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.selection import candidate, improves
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value
from ckgconv.tasks.metrics import METRICS

VALS = (0.5, 0.8, 0.8, 0.7, 0.8)
LOSSES = (0.9, 0.6, 0.4, 0.3, 0.5)


def chosen_epoch(vals=VALS, losses=LOSSES, metric="accuracy", **settings) -> Best:
    training = replace(recipe("nodes-homophilous").training, metric=metric, **settings)
    epochs, best = [], None
    for number, (val, loss) in enumerate(zip(vals, losses, strict=True)):
        epochs.append(Epoch(number, 1.0, val, 1e-3, 0.1, loss))
        found = candidate(epochs, training)
        best = found if improves(found, best, training, METRICS[metric]) else best
    return best


@pytest.mark.parametrize(
    ("settings", "epoch", "loss"),
    [
        ({"select": "metric"}, 1, None),
        ({"select": "loss"}, 3, 0.3),
        ({"select": "metric_then_loss"}, 2, 0.4),
        ({"select": "metric", "smooth_validation": 2}, 2, None),
        ({"select": "loss", "smooth_validation": 2}, 3, 0.35),
        ({"select": "metric_then_loss", "smooth_validation": 2}, 2, 0.5),
    ],
)
def test_the_epoch_that_each_way_keeps(settings, epoch, loss):
    best = chosen_epoch(**settings)
    assert (best.epoch, best.val) == (epoch, VALS[epoch])
    assert best.loss == (None if loss is None else pytest.approx(loss))


def test_ties_and_undefined_losses():
    assert chosen_epoch(losses=(0.4,) * 5, select="loss").epoch == 0
    assert chosen_epoch(losses=(math.nan, 0.5, math.nan, 0.4, math.nan), select="loss").epoch == 3
    assert chosen_epoch(losses=(math.nan,) * 5, select="metric_then_loss").epoch == 1
    assert chosen_epoch(vals=(0.3, 0.2, 0.2, 0.4, 0.2), metric="mae", select="metric_then_loss").epoch == 2


@pytest.fixture
def every_epoch(monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)


def small(name: str, **training) -> Recipe:
    base = recipe(name)
    depth = {"order": 2} if hasattr(base.model, "order") else {"blocks": 1}
    settings = replace(base.training, epochs=3, warmup_epochs=0, batch_size=3, **training)
    return replace(base, model=replace(base.model, width=8, steps=2, **depth), training=settings)


def test_a_run_records_the_loss_and_resumes_by_it(tmp_path, every_epoch):
    short = small("nodes-homophilous", select="loss", draws=2, consistency=0.5)
    data = small_dataset(short)
    whole = train(short, data=data, device="cpu", folder=tmp_path / "whole")
    record = json.loads((tmp_path / "whole" / "record.json").read_text())
    losses = [epoch["val_loss"] for epoch in record["epochs"]]
    assert record["best"]["loss"] == min(losses)
    assert record["best"]["epoch"] == losses.index(min(losses))
    assert (tmp_path / "whole" / "metrics.csv").read_text().startswith("epoch,train_loss,val,lr,seconds,val_loss\n")
    assert Record.from_json(record).best == whole.record.best
    with pytest.raises(Interruption):
        train(short, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(2))
    resumed = train(short, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    assert resumed.record.best == whole.record.best
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name])


def test_the_validation_loss_is_that_of_all_rows_in_trained_units():
    nodes = small("nodes-homophilous", select="loss")
    run = train(nodes, data=small_dataset(nodes), device="cpu")
    learner, data = run.learner, run.learner.data
    rows = data.target_rows("val")
    logits = learner.predicted(learner.batch(torch.arange(data.num_graphs)))
    expected = F.cross_entropy(logits[rows], data.y[rows].long())
    assert run.record.best.loss == pytest.approx(float(expected), rel=1e-5)
    molecules = small("zinc", scale_targets=True)
    run = train(molecules, data=small_dataset(molecules), device="cpu")
    spread = float(run.learner.scale.spread)
    assert loss_on(run.learner, "val") == pytest.approx(run.evaluate("val") / spread, rel=1e-5)


def test_draws_train_another_network_than_one_and_count_their_losses():
    """With no dropout all draws are equal: several are one, and agree."""
    still = small("nodes-homophilous", draws=1, consistency=0.0)
    node = replace(still.model.node, dropout=0.0)
    still = replace(still, model=replace(still.model, dropout=0.0, node_dropout=0.0, node=node))
    data = small_dataset(still)
    losses = [
        [epoch.train_loss for epoch in train(each, data=data, device="cpu", test=False).record.epochs]
        for each in (
            still,
            with_value(still, "training.draws=3"),
            with_value(with_value(still, "training.draws=2"), "training.consistency=1"),
        )
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert losses[2][0] > losses[0][0]  # draws agree, but not with their sharpened mean


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        (
            "nodes-homophilous",
            ("training.consistency=1", "training.draws=1"),
            "training.draws is 1: give 2 or more draws",
        ),
        ("zinc", ("training.consistency=1", "training.draws=2"), "the loss 'l1' predicts no probabilities"),
    ],
)
def test_a_consistency_that_compares_nothing_is_refused(name, values, words):
    changed = recipe(name)
    for value in values:
        changed = with_value(changed, value)
    with pytest.raises(InputError, match=words):
        check_run(changed)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("training.select=test", "give one of metric, loss, metric_then_loss"),
        ("training.draws=0", "training.draws is 0: give at least 1"),
        ("training.consistency=-1", "training.consistency is -1"),
        ("training.sharpening=0", "training.sharpening is 0"),
        ("model.node_dropout=1", "model.node_dropout is 1: give less than 1"),
    ],
)
def test_values_outside_their_bounds_are_refused(value, words):
    with pytest.raises(InputError, match=words):
        with_value(recipe("nodes-homophilous"), value)
