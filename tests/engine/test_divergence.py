"""A run whose loss or weights are no longer numbers ends with a sentence and keeps its last good network."""

import math
from dataclasses import replace

import pytest
import torch
from small_data import small_dataset

from ckgconv import InputError, open_run, recipe, train
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.saved_state import all_finite


def small(**training):
    chosen = recipe("zinc")
    model = replace(chosen.model, width=8, blocks=1, steps=3)
    settings = {"epochs": 3, "warmup_epochs": 0, "batch_size": 6, **training}
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


def rate_after(epoch):
    return lambda number: 1e-3 if number < epoch else 1e38


def test_a_run_that_diverges_keeps_the_network_before(tmp_path, monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", 0.0)  # only the first checkpoint is written in time
    data = small_dataset(small())
    folder = tmp_path / "run"
    with pytest.raises(InputError, match=r"diverged in epoch 3: .*keeps the network of epoch [12], the best one"):
        train(small(), data=data, device="cpu", folder=folder, schedule=rate_after(2))
    opened = open_run(folder, device="cpu", data=data)
    assert len(opened.record.epochs) == 2
    assert all_finite(opened.model)
    assert math.isfinite(opened.evaluate("test"))
    with pytest.raises(InputError, match="diverged in epoch 3"):
        train(small(), data=data, device="cpu", folder=folder, schedule=rate_after(2), resume=True)


def test_a_step_without_memory_is_a_sentence(monkeypatch):
    def fails(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8450473984 bytes.")

    monkeypatch.setattr("ckgconv.engine.epoch.training_step", fails)
    with pytest.raises(InputError, match=r"not enough memory for a step: choose a smaller training.batch_size"):
        train(small(), data=small_dataset(small()), device="cpu")


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_run_that_diverges_at_once_keeps_none(tmp_path, epochs):
    chosen = small(learning_rate=1e38, epochs=epochs)
    with pytest.raises(InputError, match=r"diverged in epoch 1: .*No network is kept, since no epoch had ended"):
        train(chosen, data=small_dataset(chosen), device="cpu", folder=tmp_path / "run")
    assert not (tmp_path / "run" / "best.json").exists()


def test_targets_beyond_the_range_of_floats_are_no_result():
    chosen = small()
    data = small_dataset(chosen)
    with pytest.raises(InputError, match="diverged in epoch 1: the loss is inf"):
        train(chosen, data=replace(data, y=torch.full_like(data.y, 3e38)), device="cpu")


def test_all_finite():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    assert all_finite(model)
    for value in (math.nan, math.inf, -math.inf):
        changed = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        changed[1].running_var[1] = value
        assert not all_finite(changed)


def test_batches_of_one_node_have_no_statistics():
    chosen = small(batch_size=1)
    data = small_dataset(chosen)
    with pytest.raises(InputError, match=r"training.batch_size is 1 and no training graph has two nodes"):
        train(chosen, data=one_node_graphs(data), device="cpu")
    chosen = replace(chosen, training=replace(chosen.training, batch_size=2, epochs=1))
    train(chosen, data=one_node_graphs(data), device="cpu")


def one_node_graphs(data):
    """As many graphs, each of its first node alone."""
    graphs = data.num_graphs
    pointers = torch.arange(graphs + 1)
    return replace(
        data,
        node_ptr=pointers,
        edge_ptr=torch.zeros_like(pointers),
        edge_index=torch.zeros(2, 0, dtype=torch.int64),
        x=data.x[:graphs],
        edge_attr=data.edge_attr[:0],
    )
