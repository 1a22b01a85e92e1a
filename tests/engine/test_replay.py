"""Captured steps without a GPU: a stand-in for a CUDA graph runs its launches again whenever it is replayed.

What a GPU adds, the kernels and true concurrency, is tested in test_captured.
"""

import gc
from dataclasses import fields, is_dataclass, replace
from functools import partial

import pytest
import torch
from fake_streams import Stream, fake_streams
from small_data import small_dataset
from small_models import TRAINED, of_recipe

from ckgconv import InputError
from ckgconv.engine import bench, replay
from ckgconv.engine.epoch import captured_losses, eager_losses, evaluate, train_epoch
from ckgconv.engine.learner import Learner
from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import Source, source_of
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.step import training_step
from ckgconv.engine.window import Window
from ckgconv.nn import CKGCN, message_passing, san
from ckgconv.nn.models import build_model
from ckgconv.recipes import recipe, with_value


class Rerun:
    """Capturing runs nothing; a replay runs the launches."""

    def __init__(self, launches):
        self.replay = launches


@pytest.fixture
def captures(monkeypatch):
    log, _, _ = fake_streams(monkeypatch, 0)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device, priority=0: Stream(f"stream {priority}", log))
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: None)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(replay.Replay, "_graph", lambda self, pool, launches: Rerun(launches))
    monkeypatch.setattr(Learner, "captures", True)
    return log


def learner_of(name, *settings, weighted=False):
    chosen = recipe(name)
    small = ("model.width=8", "model.blocks=1", "model.steps=3", "training.batch_size=3")
    dry = ("model.dropout=0", "model.kernel.dropout=0", "model.kernel.mlp_dropout=0")
    for setting in (*small, *dry, *settings):
        chosen = with_value(chosen, setting)
    torch.manual_seed(4)
    data = small_dataset(chosen, graphs=60)
    if weighted:
        data = replace(data, target_weight=torch.rand(60, generator=torch.Generator().manual_seed(5)) + 0.5)
    return make_learner(make_fabric("cpu", "64"), CKGCN.from_recipe(chosen).double(), data, chosen)


CASES = [("zinc",), ("zinc", "model.support=2"), ("pattern",), ("mnist",)]


@pytest.mark.usefixtures("captures")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_epoch_is_the_eager_one(case):
    one, other = learner_of(*case), learner_of(*case)
    torch.manual_seed(1)
    found = list(captured_losses(one))
    torch.manual_seed(1)
    expected = list(eager_losses(other))
    assert [count for count, _ in found] == [count for count, _ in expected]
    assert [loss for _, loss in found] == pytest.approx([loss for _, loss in expected], rel=1e-8)
    for (name, mine), theirs in zip(one.model.state_dict().items(), other.model.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8, msg=name)


def small_learner(small):
    """A small model of any kind in float64; some graphs have one node, so that norms see few rows."""
    chosen = of_recipe(small, batch_size=4)
    torch.manual_seed(4)
    model = build_model(small).double()
    return make_learner(make_fabric("cpu", "64"), model, small_dataset(chosen), chosen)


@pytest.mark.usefixtures("captures")
@pytest.mark.parametrize("small", TRAINED)
def test_an_epoch_of_every_model_is_the_eager_one(small, monkeypatch):
    # Signs of eigenvectors are drawn for each batch, so that two trainings are not the same.
    for module in (message_passing, san):
        monkeypatch.setattr(module, "with_drawn_signs", lambda batch, vectors: batch.node_encoding)
    one, other = small_learner(small), small_learner(small)
    torch.manual_seed(1)
    found = [loss for _, loss in captured_losses(one)]
    torch.manual_seed(1)
    assert found == pytest.approx([loss for _, loss in eager_losses(other)], rel=1e-6)


@pytest.mark.usefixtures("captures")
@pytest.mark.parametrize("window", [False, True])
def test_each_batch_has_the_weights_of_its_own_graphs(window, monkeypatch):
    if window:
        monkeypatch.setattr(
            Source, "window", lambda self, capacity: Window(self.learner.data, capacity, torch.device("cpu"))
        )
    one, other = learner_of("zinc", weighted=True), learner_of("zinc", weighted=True)
    torch.manual_seed(1)
    found = [loss for _, loss in captured_losses(one)]
    torch.manual_seed(1)
    assert found == pytest.approx([loss for _, loss in eager_losses(other)], rel=1e-8)


def tensors_of(value):
    """Every tensor of a dataclass, of those inside it too."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else []
    return [tensor for part in parts for tensor in tensors_of(part)]


EVERY_FIELD = [*TRAINED, pytest.param(recipe("mnist").model, id="mnist"), pytest.param(recipe("pattern").model)]


@pytest.mark.parametrize("small", EVERY_FIELD)
def test_a_slot_takes_every_tensor_of_a_sample(small):
    """Tensors are found here by the fields of the dataclasses; a slot finds them otherwise."""
    chosen = of_recipe(small)
    data = small_dataset(chosen)
    data = data if data.node_targets else replace(data, target_weight=torch.rand(data.num_graphs))
    source = source_of(make_learner(make_fabric("cpu", "64"), build_model(small).double(), data, chosen))
    batches = torch.tensor([[0, 1, 2], [3, 4, -1]])
    capacity = source.sizes.needed(batches)
    slot, sample = (source.sample(data, numbers, capacity, "train") for numbers in batches)
    replay._copy(slot, sample)
    copied, expected = tensors_of(slot), tensors_of(sample)
    assert len(copied) == len(expected) > 10
    for mine, theirs in zip(copied, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.usefixtures("captures")
def test_garbage_is_collected_before_a_capture_and_not_during_one(monkeypatch):
    seen = []

    class Cycle:
        def __init__(self):
            self.itself = self

        def __del__(self):
            seen.append("collected")

    def graph(self, pool, launches):
        seen.append(gc.isenabled())
        return Rerun(launches)

    monkeypatch.setattr(replay.Replay, "_graph", graph)
    learner = learner_of("zinc")
    table = replay.padded_table(learner.data.train, 3)
    source = source_of(learner)
    Cycle()
    replay.Replay(source, table, "train", partial(training_step, learner))
    assert seen[0] == "collected"
    assert seen[1:] == [False] * 3
    assert gc.isenabled()


@pytest.mark.usefixtures("captures")
def test_medians_of_batches_are_those_of_eager_steps():
    """The steps that a capture warms up with do not count."""
    one, other = (learner_of("zinc", "training.norm_statistics=median") for _ in range(2))
    for learner, losses in ((one, captured_losses), (other, eager_losses)):
        torch.manual_seed(1)
        steps = len(list(losses(learner)))
        assert int(learner.statistics.counter) == steps
        learner.statistics.settle()
    for mine, theirs in zip(one.statistics.running, other.statistics.running, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_evaluation_is_the_eager_one(case, captures, monkeypatch):
    learner = learner_of(*case)
    found = [evaluate(learner, split) for split in ("train", "val")]
    monkeypatch.setattr(Learner, "captures", False)
    assert found == pytest.approx([evaluate(learner, split) for split in ("train", "val")])


@pytest.mark.usefixtures("captures")
def test_epochs_share_a_capture_and_several_steps_a_graph():
    learner = learner_of("zinc", "training.batch_size=1")
    first = train_epoch(learner, 1, lambda count, loss: None)
    captured = learner.replays["training"]
    assert captured.several is not None
    second = train_epoch(learner, 2, lambda count, loss: None)
    assert learner.replays["training"] is captured
    assert second["train_loss"] != first["train_loss"]


@pytest.mark.usefixtures("captures")
def test_capturing_leaves_no_trace():
    learner = learner_of("zinc")
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    table = replay.padded_table(learner.data.train, 3)
    replay.Replay(source_of(learner), table, "train", partial(training_step, learner))
    assert all(torch.equal(value, before[name]) for name, value in learner.model.state_dict().items())
    moments = learner.optimizer.optimizer.state.values()
    assert all(not value.any() for state in moments for value in state.values())


@pytest.mark.usefixtures("captures")
def test_batches_that_do_not_fit_are_refused():
    learner = learner_of("zinc")
    table = replay.padded_table(learner.data.train, 3)
    captured = replay.Replay(source_of(learner), table, "train", partial(training_step, learner))
    with pytest.raises(InputError, match="do not fit the captured step"):
        captured.run(table[:-1])


@pytest.mark.usefixtures("captures")
def test_a_data_set_in_host_memory_passes_through_a_window(monkeypatch):
    whole, streamed = learner_of("zinc"), learner_of("zinc")
    torch.manual_seed(1)
    expected = [loss for _, loss in captured_losses(whole)]
    monkeypatch.setattr(
        Source, "window", lambda self, capacity: Window(self.learner.data, capacity, torch.device("cpu"))
    )
    torch.manual_seed(1)
    assert [loss for _, loss in captured_losses(streamed)] == pytest.approx(expected, rel=1e-12)
    assert streamed.replays["training"].several is None


@pytest.mark.usefixtures("captures")
def test_too_little_memory_is_a_sentence(monkeypatch):
    def full(self):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(replay.Replay, "_capture", full)
    with pytest.raises(InputError, match="does not fit into the GPU's memory"):
        list(captured_losses(learner_of("zinc")))


@pytest.mark.usefixtures("captures")
def test_captured_steps_are_timed_by_part():
    report = bench.measure(learner_of("zinc"), steps=4)
    parts = ("data_ms", "forward_ms", "backward_ms", "update_ms", "step_ms", "epoch_s", "pairs_gb_s", "copy_gb_s")
    assert all(name in report for name in parts)
    assert report["step_ms"] > 0


def test_side_streams_are_joined_before_the_next_step(captures):
    learner = learner_of("zinc")
    captures.clear()
    list(captured_losses(learner))
    assert captures[-1] == "main waits for stream 0"
