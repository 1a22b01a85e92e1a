"""Statistics that norms evaluate with: medians over the batches of an epoch; training is not changed by them."""

import math
from dataclasses import replace

import pytest
import torch
from interruption import Interruption, StopAfter
from small_data import small_dataset
from torch import nn

from ckgconv import InputError, recipe, train
from ckgconv.engine import checkpoint, norm_statistics
from ckgconv.engine.norm_statistics import BatchStatistics
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.recipe import Recipe


def small(**training) -> Recipe:
    chosen = recipe("zinc")
    settings = {"epochs": 2, "warmup_epochs": 0, "batch_size": 2, "norm_statistics": "median", **training}
    model = replace(chosen.model, width=8, blocks=2, steps=3)
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


class KeepsStatistics:
    """Buffers and weights of the model after every step, and its buffers when it is validated."""

    def __init__(self) -> None:
        self.batches: list[dict[str, torch.Tensor]] = []
        self.weights: list[dict[str, torch.Tensor]] = []
        self.epochs: list[dict[str, torch.Tensor]] = []

    def on_step(self, run, graphs, loss):
        self.batches.append({name: value.clone() for name, value in run.model.named_buffers()})
        self.weights.append({name: value.detach().clone() for name, value in run.model.named_parameters()})

    def on_epoch(self, run, epoch):
        self.epochs.append({name: value.clone() for name, value in run.model.named_buffers()})


@pytest.mark.parametrize("most", [256, 2])
def test_norms_evaluate_with_the_medians_of_the_last_batches(most, monkeypatch):
    monkeypatch.setattr(norm_statistics, "MOST", most)
    chosen, kept = small(), KeepsStatistics()
    train(chosen, data=small_dataset(chosen), device="cpu", callbacks=[kept])
    assert len(kept.batches) == 6
    for epoch, found in enumerate(kept.epochs):
        batches = kept.batches[3 * epoch : 3 * epoch + 3][-most:]
        for name in (name for name in found if "running" in name):
            wanted = torch.stack([batch[name] for batch in batches]).median(0).values
            assert torch.equal(found[name], wanted), name
        last = kept.batches[3 * epoch + 2]
        assert any(not torch.equal(found[name], value) for name, value in last.items())


def test_a_batch_leaves_its_own_statistics():
    norm, rows = WeightedBatchNorm(3), torch.randn(7, 3)
    statistics = BatchStatistics(nn.Sequential(norm, nn.BatchNorm1d(3)))
    norm.train()(rows)
    torch.testing.assert_close(norm.running_mean[0], rows.mean(0))
    torch.testing.assert_close(norm.running_variance[0], rows.var(0))
    statistics.settle()  # no step was recorded
    torch.testing.assert_close(norm.running_mean[0], rows.mean(0))
    assert statistics.table.shape == (256, 12)


def test_training_itself_is_that_with_running_averages():
    medians, running = KeepsStatistics(), KeepsStatistics()
    data = small_dataset(small())
    runs = [
        train(small(), data=data, device="cpu", callbacks=[medians]),
        train(small(norm_statistics="running"), data=data, device="cpu", callbacks=[running]),
    ]
    for one, other in zip(medians.weights, running.weights, strict=True):
        assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert runs[0].record.epochs[-1].val != runs[1].record.epochs[-1].val


def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)
    chosen = small(epochs=4, batch_size=3)
    data = small_dataset(chosen)
    whole = train(chosen, data=data, folder=tmp_path / "whole", device="cpu")
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(5))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    assert resumed.record.best == whole.record.best
    mine, theirs = (checkpoint.load(tmp_path / name / "checkpoints/000003")[0] for name in ("run", "whole"))
    assert all(torch.equal(mine[name], value) for name, value in theirs.items())


def test_a_network_without_batch_norms_is_refused():
    with pytest.raises(InputError, match="has no batch norm: set it to 'running'"):
        BatchStatistics(nn.Linear(2, 2))
