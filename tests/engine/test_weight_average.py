"""Averaged weights: the equation, what is evaluated and kept, resuming bit for bit, the update inside the optimiser."""

import math
from dataclasses import replace

import pytest
import torch
from interruption import Interruption, StopAfter
from on_device import DEVICE, needs_triton
from small_data import small_dataset
from torch import nn

from ckgconv import InputError, open_run, recipe, train
from ckgconv.backends.cuda.adamw.naive import Rates
from ckgconv.engine import checkpoint, replay
from ckgconv.engine.epoch import evaluate
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.weight_average import WeightAverage
from ckgconv.nn.models import build_model
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value

DECAY = 0.75


@pytest.fixture(autouse=True)
def _checkpoint_every_epoch(monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)


def small(**training) -> Recipe:
    chosen = recipe("zinc")
    settings = {"epochs": 3, "warmup_epochs": 0, "batch_size": 3, "ema_decay": DECAY, **training}
    model = replace(chosen.model, width=8, blocks=2, steps=3, dropout=0.2)
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


class KeepsWeights:
    """The trained weights after every step, and the state of the model when validated."""

    def __init__(self) -> None:
        self.steps: list[dict[str, torch.Tensor]] = []
        self.epochs: list[int] = []

    def on_step(self, run, graphs, loss):
        self.steps.append({name: value.detach().clone() for name, value in run.model.named_parameters()})

    def on_epoch(self, run, epoch):
        self.epochs.append(len(self.steps))


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_the_best_network_is_the_average_of_all_steps(optimizer):
    chosen, kept = small(optimizer=optimizer), KeepsWeights()
    torch.manual_seed(0)
    start = dict(build_model(chosen.model).named_parameters())
    run = train(chosen, data=small_dataset(chosen), device="cpu", callbacks=[kept])
    best = kept.epochs[run.record.best.epoch]
    for name, value in run.model.named_parameters():
        # Σ over all steps s of (1 - d) d^(S - s) θ_s, and d^S θ_0.
        wanted = DECAY**best * start[name].detach().double()
        for step, weights in enumerate(kept.steps[:best], start=1):
            wanted += (1 - DECAY) * DECAY ** (best - step) * weights[name].double()
        torch.testing.assert_close(value.detach().double(), wanted, rtol=1e-4, atol=1e-6, msg=name)
    assert any(not torch.equal(value, kept.steps[best - 1][name]) for name, value in run.model.named_parameters())
    assert evaluate(run.learner, "val") == run.record.best.val
    assert run.evaluate("test") == run.record.best.test


def test_training_itself_is_that_without_an_average():
    chosen = small()
    averaged, plain = KeepsWeights(), KeepsWeights()
    data = small_dataset(chosen)
    train(chosen, data=data, device="cpu", callbacks=[averaged])
    train(small(ema_decay=0.0), data=data, device="cpu", callbacks=[plain])
    for one, other in zip(averaged.steps, plain.steps, strict=True):
        assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path):
    chosen = small(epochs=4)
    data = small_dataset(chosen)
    whole = train(chosen, data=data, folder=tmp_path / "whole", device="cpu")
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(5))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    assert resumed.record.best == whole.record.best
    last = "checkpoints/000003"
    mine, theirs = (checkpoint.load(tmp_path / name / last)[0] for name in ("run", "whole"))
    assert set(mine) == set(theirs)
    averaged = {name.removeprefix("average.") for name in mine if name.startswith("average.")}
    assert averaged == {name for name, _ in whole.model.named_parameters()}
    for name, value in theirs.items():
        assert torch.equal(mine[name], value), name
    opened = open_run(tmp_path / "run", device="cpu", data=data)
    assert opened.evaluate("test") == resumed.record.best.test


def test_without_an_average_checkpoints_are_what_they_were(tmp_path):
    chosen = small(ema_decay=0.0, epochs=1)
    run = train(chosen, data=small_dataset(chosen), folder=tmp_path / "run", device="cpu")
    tensors, _ = checkpoint.load(tmp_path / "run/checkpoints/000000")
    assert run.learner.average is None
    assert {name.split(".")[0] for name in tensors} == {"model", "optimizer", "best"}


def test_the_trained_weights_return_even_after_an_error():
    model = nn.Linear(3, 2)
    average = WeightAverage(model, 0.5, torch.optim.SGD(model.parameters()))
    with torch.no_grad():
        model.weight.add_(1)
    trained = model.weight.detach().clone()

    def fail() -> None:
        with average.in_place():
            torch.testing.assert_close(model.weight.detach(), trained - 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.equal(model.weight, trained)


def test_warming_up_a_capture_leaves_the_average_alone():
    chosen = small()
    model = build_model(chosen.model)
    learner = make_learner(make_fabric("cpu", "32"), model, small_dataset(chosen), chosen)
    kept = replay._state(learner)
    before = {name: value.clone() for name, value in learner.average.tensors().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    learner.average.update()
    replay._restore(learner, kept)
    assert all(torch.equal(value, before[name]) for name, value in learner.average.tensors().items())


@needs_triton
def test_the_flat_optimiser_averages_in_its_own_update():
    from ckgconv.backends.cuda.adamw.flat import FlatAdamW

    model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2)).to(DEVICE)
    optimizer = FlatAdamW(list(model.parameters()), Rates(1.0, 0.1, ema_decay=DECAY), 1e-2)
    average = WeightAverage(model, DECAY, optimizer)
    assert average.in_optimizer
    wanted = [parameter.detach().clone() for parameter in model.parameters()]
    for _ in range(3):
        model(torch.randn(4, 5, device=DEVICE)).square().sum().backward()
        optimizer.clipped_step()
        average.update()
        optimizer.zero_grad()
        for value, parameter in zip(wanted, model.parameters(), strict=True):
            value.lerp_(parameter.detach(), 1 - DECAY)
    for value, found in zip(wanted, average.tensors().values(), strict=True):
        torch.testing.assert_close(found, value)


@pytest.mark.parametrize("decay", ["1", "-0.1", "2"])
def test_a_decay_outside_its_bounds_is_refused(decay):
    with pytest.raises(InputError, match=r"training.ema_decay is .*: give (less than 1|at least 0)"):
        with_value(recipe("zinc"), f"training.ema_decay={decay}")
