"""What a run ends with: the mean over its last epochs, which weights are tested and when, resuming bit for bit."""

import json
import math
from dataclasses import replace

import pytest
import torch
from interruption import Interruption, StopAfter
from small_data import small_dataset

from ckgconv import open_run, recipe, train
from ckgconv.engine import checkpoint, endings
from ckgconv.engine.endings import EpochMean
from ckgconv.engine.epoch import evaluate
from ckgconv.engine.record import Ending, load_record
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.run import record_test
from ckgconv.recipe import Recipe


@pytest.fixture(autouse=True)
def _checkpoint_every_epoch(monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)


def small(**training) -> Recipe:
    chosen = recipe("zinc")
    settings = {"epochs": 8, "warmup_epochs": 0, "batch_size": 4, "learning_rate": 1e-2, **training}
    model = replace(chosen.model, width=8, blocks=1, steps=3)
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


class Keeps:
    """The state of the model after every epoch, as it is validated."""

    def __init__(self) -> None:
        self.epochs: list[dict[str, torch.Tensor]] = []

    def on_epoch(self, run, epoch):
        with run.learner.averaged():
            self.epochs.append({name: value.clone() for name, value in run.model.state_dict().items()})


@pytest.fixture(scope="module", params=[0.0, 0.9], ids=["plain", "ema"])
def ended(request):
    chosen, kept = small(ema_decay=request.param), Keeps()
    data = small_dataset(chosen)
    return train(chosen, data=data, device="cpu", callbacks=[kept]), kept.epochs


def test_the_mean_is_that_of_the_last_quarter_of_the_epochs(ended):
    run, epochs = ended
    assert run.record.averaged.epochs == 2
    for name, value in run.endings["averaged"].items():
        if value.is_floating_point():  # running statistics too
            wanted = torch.stack([each[name] for each in epochs[-2:]]).double().mean(0)
            torch.testing.assert_close(value.double(), wanted, rtol=1e-5, atol=1e-7, msg=name)
        else:
            assert torch.equal(value, epochs[-1][name])
    assert all(torch.equal(value, epochs[-1][name]) for name, value in run.endings["last"].items())


def test_every_metric_is_that_of_its_weights_and_the_best_ones_return(ended):
    run, _ = ended
    record = run.record
    assert record.last.val == record.epochs[-1].val
    for name, ending in (("last", record.last), ("averaged", record.averaged)):
        run.model.load_state_dict(run.endings[name])
        assert (ending.val, ending.test) == (evaluate(run.learner, "val"), evaluate(run.learner, "test"))
    run.model.load_state_dict(run.best_weights)
    assert run.evaluate("test") == record.best.test
    assert len({record.best.test, record.last.test, record.averaged.test}) > 1


def test_training_itself_does_not_change():
    chosen = small(epochs=4)
    data = small_dataset(chosen)
    run = train(chosen, data=data, device="cpu")
    assert [run.mean.first, run.mean.count] == [3, 1]
    assert run.record.averaged == replace(run.record.last)  # the mean of one epoch
    short = train(small(epochs=3), data=data, device="cpu")
    assert short.record.averaged is None  # too few epochs for a quarter of them
    assert "averaged" not in short.record.to_json()


def test_a_resumed_run_ends_the_same_and_is_tested_later(tmp_path, monkeypatch):
    chosen = small()
    data = small_dataset(chosen)
    whole = train(chosen, data=data, folder=tmp_path / "whole", device="cpu")
    steps = -(-len(data.train) // 4)
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(7 * steps + 1), test=False)
    read = []
    monkeypatch.setattr(endings, "evaluate", lambda learner, split: read.append(split) or evaluate(learner, split))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True, test=False)
    assert read == ["val"]
    assert resumed.record.averaged == replace(whole.record.averaged, test=None)
    saved = json.loads((tmp_path / "run" / "record.json").read_text())
    assert saved["last"]["test"] is None
    assert saved["averaged"]["test"] is None
    opened = open_run(tmp_path / "run", device="cpu", data=data)
    record_test(opened)
    assert read == ["val", "test", "test"]
    tested = load_record(tmp_path / "run")
    assert (tested.last, tested.averaged) == (whole.record.last, whole.record.averaged)
    mine, theirs = (checkpoint.load(tmp_path / name / "checkpoints/000007")[0] for name in ("run", "whole"))
    assert all(torch.equal(mine[name], value) for name, value in theirs.items())
    assert any(name.startswith("mean.") for name in theirs)


def test_a_run_whose_checkpoints_are_gone_is_tested_at_its_best_epoch_alone(tmp_path):
    chosen = small(epochs=4)
    data = small_dataset(chosen)
    train(chosen, data=data, folder=tmp_path / "run", device="cpu", test=False)
    for file in (tmp_path / "run" / "checkpoints").iterdir():
        file.unlink()
    opened = open_run(tmp_path / "run", device="cpu", data=data)
    record_test(opened)
    assert opened.record.test is not None
    assert opened.record.last.test is None


def test_a_checkpoint_of_an_earlier_version_has_lost_the_mean():
    weights = {"w": torch.ones(2), "count": torch.tensor(3)}
    mean = EpochMean(8)
    mean.load({}, 7)
    mean.add(7, weights)
    assert not mean.values
    early = EpochMean(8)
    early.load({}, 6)
    early.add(6, weights)
    early.add(7, {"w": torch.zeros(2), "count": torch.tensor(4)})
    torch.testing.assert_close(early.values["w"], torch.full((2,), 0.5))
    assert int(early.values["count"]) == 4


def test_further_metrics_of_what_a_run_ends_with_are_recorded(tmp_path):
    chosen = small(epochs=4, metrics=("trimmed_mae", "rmse"))
    data = small_dataset(chosen)
    train(chosen, data=data, folder=tmp_path, device="cpu", test=False)
    kept = load_record(tmp_path)
    assert set(kept.last.metrics) == set(kept.averaged.metrics) == {"val"}
    opened = open_run(tmp_path, device="cpu", data=data)
    record_test(opened)
    tested = load_record(tmp_path)
    for ending, before in ((tested.last, kept.last), (tested.averaged, kept.averaged)):
        assert set(ending.metrics) == {"val", "test"}
        assert ending.metrics["val"] == before.metrics["val"]
        # Of so few graphs no error is left out.
        assert ending.metrics["test"]["trimmed_mae"] == pytest.approx(ending.test, rel=1e-5)
        assert ending.metrics["test"]["rmse"] >= ending.test - 1e-6


def test_a_run_that_is_stopped_has_not_ended():
    chosen = small()

    class Stop:
        def on_epoch(self, run, epoch):
            return epoch.epoch == 6

    run = train(chosen, data=small_dataset(chosen), device="cpu", callbacks=[Stop()])
    assert run.record.last is None
    assert run.record.averaged is None
    assert Ending(1, 0.5).test is None
