"""Optimisers by name: the recipe chooses, each trains, and the momentum of SGD survives an interruption."""

from dataclasses import replace

import pytest
import torch
from small_data import small_dataset
from torch import nn

from ckgconv import InputError, recipe, train
from ckgconv.backends.cuda.adamw.flat import FlatAdamW
from ckgconv.engine.checkpoint import restore_training, training_tensors
from ckgconv.engine.learning_rate import learning_rate
from ckgconv.engine.optimizers import OPTIMIZERS, can_be_captured, optimizer_of
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value


def small(**training) -> Recipe:
    chosen = recipe("zinc")
    settings = {"epochs": 4, "warmup_epochs": 1, "batch_size": 3, **training}
    model = replace(chosen.model, width=8, blocks=2, steps=3)
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


class Interruption(Exception):
    pass


class StopAfter:
    """A watcher that interrupts the run in the middle of an epoch, as a kill would."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def start(self, run, first_epoch): ...
    def epoch(self, entry): ...
    def warn(self, sentence): ...

    def step(self, graphs, loss):
        self.steps -= 1
        if self.steps == 0:
            raise Interruption


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_recipe_chooses_the_optimiser(name):
    model = nn.Linear(3, 2)
    training = replace(recipe("zinc").training, optimizer=name, momentum=0.7, weight_decay=0.01, learning_rate=0.02)
    chosen = optimizer_of(model, training)
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    assert type(chosen) is kinds[name]
    (group,) = chosen.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.02, 0.01)
    assert group.get("momentum", 0.7) == 0.7
    assert not can_be_captured(chosen)


def test_only_adamw_has_a_flat_form_on_a_gpu(monkeypatch):
    monkeypatch.setattr("ckgconv.ops.dispatch.uses_triton", lambda x: True)
    made = []
    monkeypatch.setattr(FlatAdamW, "__init__", lambda self, parameters, rates, rate: made.append(rate))
    training = recipe("zinc").training
    for rate, name in enumerate(OPTIMIZERS, start=1):
        optimizer_of(nn.Linear(3, 2), replace(training, optimizer=name, learning_rate=rate))
    assert made == [1 + list(OPTIMIZERS).index("adamw")]


@pytest.mark.parametrize(("steps", "momentum"), [(1, 0.9), (5, 0.9), (5, 0.0)])
def test_an_interrupted_run_with_sgd_resumes_bit_for_bit(tmp_path, monkeypatch, steps, momentum):
    monkeypatch.setattr(CheckpointBudget, "share", float("inf"))
    chosen = small(optimizer="sgd", momentum=momentum, learning_rate=1e-2)
    data = small_dataset(chosen)
    whole = train(chosen, data=data, device="cpu")
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(steps))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    losses = [[entry.train_loss for entry in run.record.epochs] for run in (resumed, whole)]
    assert losses[0] == losses[1]


def test_checkpoints_hold_the_momentum_once_it_exists():
    model = nn.Linear(3, 2)
    sgd = optimizer_of(model, replace(recipe("zinc").training, optimizer="sgd"))
    assert set(training_tensors(model, sgd)) == {"model.weight", "model.bias"}
    model(torch.rand(4, 3)).square().sum().backward()
    sgd.step()
    sgd.state[model.bias]["momentum_buffer"] = None  # its value before the first step in some versions of torch
    tensors = training_tensors(model, sgd)
    assert set(tensors) == {"model.weight", "model.bias", "optimizer.momentum_buffer.weight"}
    other = nn.Linear(3, 2)
    restored = optimizer_of(other, replace(recipe("zinc").training, optimizer="sgd"))
    restore_training(tensors, other, restored)
    assert torch.equal(restored.state[other.weight]["momentum_buffer"], sgd.state[model.weight]["momentum_buffer"])


def test_unknown_names_and_values_are_refused_before_data_is_read():
    for setting, words in (
        ("training.optimizer=sdg", "no optimiser 'sdg': did you mean sgd?"),
        ("training.loss=hubr", "no loss 'hubr': did you mean huber?"),
        ("training.metric=rsme", "no metric 'rsme': did you mean rmse?"),
        ("model.encoding=haet", "no pseudo-coordinate 'haet': did you mean heat?"),
        ("training.metric=accuracy", "is judged by mae or rmse or mse or r2"),
    ):
        with pytest.raises(InputError) as caught:
            train(with_value(recipe("zinc"), setting), data="/nowhere", device="cpu")
        assert words in str(caught.value)
    with pytest.raises(InputError, match="momentum is 1: give less than 1"):
        with_value(recipe("zinc"), "training.momentum=1")


@pytest.mark.parametrize(
    "settings",
    [
        ["model.encoding=heat"],
        ["training.loss=huber", "training.metric=rmse", "training.scale_targets=true"],
        ["training.metric=r2", "training.optimizer=sgd"],
    ],
)
def test_coordinates_losses_metrics_and_optimisers_beyond_the_paper_train(settings):
    chosen = small(epochs=20, learning_rate=2e-2)
    for setting in ("model.kernel.dropout=0", "model.kernel.mlp_dropout=0", *settings):
        chosen = with_value(chosen, setting)
    run = train(chosen, data=small_dataset(chosen), device="cpu")
    losses = [entry.train_loss for entry in run.record.epochs]
    assert losses[-1] < losses[0]
    assert run.evaluate("test") == run.record.best.test


@pytest.mark.parametrize(
    ("schedule", "share"),
    [
        ("linear", lambda t: 1 - t),
        ("constant", lambda t: 1.0),
        ("constant_linear", lambda t: 1.0 if t <= 0.75 else (1 - t) / 0.25),
    ],
)
def test_schedules_after_the_warm_up(schedule, share):
    training = replace(
        recipe("zinc").training, epochs=44, warmup_epochs=4, learning_rate=0.02, min_learning_rate=0.004,
        schedule=schedule, cooldown=0.25,
    )  # fmt: skip
    cosine = replace(training, schedule="cosine")
    assert [learning_rate(e, training) for e in range(5)] == [learning_rate(e, cosine) for e in range(5)]
    for epoch in range(4, 45):
        wanted = 0.004 + 0.016 * share((epoch - 4) / 40)
        assert learning_rate(epoch, training) == pytest.approx(wanted, rel=1e-12)


def test_no_cooldown_is_a_constant_rate():
    training = replace(recipe("zinc").training, schedule="constant_linear", cooldown=0.0)
    assert {learning_rate(e, training) for e in range(50, 2001)} == {training.learning_rate}


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("training.schedule=step", "give one of cosine, linear, constant, constant_linear"),
        ("training.cooldown=1", "training.cooldown is 1: give less than 1"),
        ("training.smooth_validation=0", "training.smooth_validation is 0: give at least 1"),
    ],
)
def test_schedules_and_smoothing_outside_their_bounds_are_refused(assignment, words):
    with pytest.raises(InputError, match=words):
        with_value(recipe("zinc"), assignment)
