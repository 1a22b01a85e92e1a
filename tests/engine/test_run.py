"""Runs: every recipe, resuming, damage, early stopping, precision, memory.

Covers `ckgconv.engine.learner`.
"""

import json
import math
from dataclasses import replace

import pytest
import torch
from interruption import Interruption, StopAfter
from small_data import small_dataset

from ckgconv import RECIPES, InputError, open_run, recipe, train
from ckgconv.engine import checkpoint
from ckgconv.engine import run as run_module
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.files import write_text, write_whole
from ckgconv.recipe import Recipe

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(autouse=True)
def _checkpoint_every_epoch(monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)


def small(name: str = "zinc", **training) -> Recipe:
    chosen = recipe(name)
    depth = {"blocks": 2} if hasattr(chosen.model, "blocks") else {}
    apart = {"encoding_channels": 4} if getattr(chosen.model, "encoding_channels", 0) else {}
    model = replace(chosen.model, width=8, steps=3, **depth, **apart)
    settings = {"epochs": 3, "warmup_epochs": 1, "batch_size": 3, **training}
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


def data_for(chosen: Recipe):
    return small_dataset(chosen)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_trains_and_evaluates(name):
    chosen = small(name, epochs=2)
    run = train(chosen, data=data_for(chosen), device="cpu")
    assert len(run.record.epochs) == 2
    assert math.isfinite(run.record.best.test)
    assert run.evaluate("test") == run.record.best.test
    assert run.folder is None


def test_a_run_writes_its_record_metrics_and_scalars(tmp_path):
    chosen = small()
    run = train(chosen, seed=5, data=data_for(chosen), folder=tmp_path / "run", device="cpu")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record == json.loads(json.dumps(run.record.to_json()))
    assert {"recipe", "seed", "commit", "versions", "device", "parameters", "epochs", "best", "metric"} <= set(record)
    assert {"wall_s", "peak_memory_mb"} <= set(record)
    assert [set(entry) for entry in record["epochs"]] == [{"epoch", "train_loss", "val", "lr", "seconds"}] * 3
    assert set(record["best"]) == {"epoch", "val", "test"}
    assert record["best"]["val"] == min(entry["val"] for entry in record["epochs"])
    lines = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert lines[0] == "epoch,train_loss,val,lr,seconds"
    assert len(lines) == 4
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    assert not list((tmp_path / "run").glob(".*.part"))


def test_same_seed_same_run_other_seed_other_run():
    chosen = small()
    results = [train(chosen, seed=seed, data=data_for(chosen), device="cpu").record.epochs for seed in (0, 0, 1)]
    losses = [[entry.train_loss for entry in epochs] for epochs in results]
    assert losses[0] == losses[1] != losses[2]


def weights(run):
    return {name: value.clone() for name, value in run.model.state_dict().items()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_an_interrupted_run_resumes_bit_for_bit(tmp_path, steps, device):
    chosen = small(epochs=4)
    data = data_for(chosen)
    whole = train(chosen, data=data, device=device)
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device=device, watcher=StopAfter(steps))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device=device, resume=True)
    for name, value in weights(whole).items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    assert resumed.record.best == whole.record.best
    again = train(chosen, data=data, folder=tmp_path / "run", device=device, resume=True)
    assert again.record.best == whole.record.best


@pytest.mark.parametrize("damage", ["truncated", "altered", "json"])
def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(tmp_path, damage):
    chosen = small(epochs=4)
    data = data_for(chosen)
    whole = train(chosen, data=data, device="cpu")
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(7))
    newest = sorted((tmp_path / "run" / "checkpoints").glob("*.safetensors"))[-1]
    content = newest.read_bytes()
    if damage == "truncated":
        newest.write_bytes(content[:-100])
    elif damage == "altered":
        newest.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
    else:
        newest.with_suffix(".json").write_text("{")
    watcher = StopAfter(10**9)
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True, watcher=watcher)
    assert watcher.first_epoch == 2
    assert "damaged" in watcher.warnings[0]
    for name, value in weights(whole).items():
        assert torch.equal(value, resumed.model.state_dict()[name])


def test_all_checkpoints_damaged_starts_again(tmp_path):
    chosen = small(epochs=2)
    data = data_for(chosen)
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(3))
    for mark in (tmp_path / "run" / "checkpoints").glob("*.json"):
        mark.write_text("[]")
    watcher = StopAfter(10**9)
    train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True, watcher=watcher)
    assert watcher.first_epoch == 0
    assert "no sound checkpoint" in watcher.warnings[-1]


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    chosen = small(epochs=4)
    train(chosen, data=data_for(chosen), folder=tmp_path / "run", device="cpu")
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["000002.json", "000002.safetensors", "000003.json", "000003.safetensors"]


def test_opened_run_predicts_as_it_did(tmp_path):
    chosen = small("zinc", epochs=2, scale_targets=True)
    run = train(chosen, data=data_for(chosen), folder=tmp_path / "run", device="cpu")
    tensors, state = checkpoint.load(tmp_path / "run" / "best")
    assert state["scale"]["spread"] == run.learner.scale.spread.tolist()
    assert all(torch.equal(value, run.model.state_dict()[name]) for name, value in tensors.items())


def test_scaled_targets_are_reported_in_the_users_units():
    chosen = small("zinc", epochs=1, scale_targets=True)
    data = data_for(chosen)
    far = replace(data, y=data.y * 100 + 5000)
    run = train(chosen, data=far, device="cpu")
    # An untrained network predicts values near the mean: within a few s.d., not 5,000 off.
    assert run.record.best.test < 500
    assert run.record.epochs[0].train_loss < 5


class Validations:
    """Validation metrics, one for each evaluation, in place of those of the network; the test metric is 7."""

    def __init__(self, values):
        self.values = iter(values)

    def __call__(self, learner, split):
        return 7.0 if split == "test" else next(self.values)


@pytest.mark.parametrize(
    ("width", "epoch", "smoothed"),
    [(1, 1, None), (2, 4, 2.5), (3, 5, (2 + 3 + 2.9) / 3)],
)
def test_the_best_epoch_is_that_of_the_smoothed_validation(monkeypatch, tmp_path, width, epoch, smoothed):
    values = [9.0, 1.0, 8.0, 2.0, 3.0, 2.9]
    monkeypatch.setattr("ckgconv.engine.run.evaluate", Validations(values))
    chosen = small(epochs=6, smooth_validation=width)
    run = train(chosen, data=data_for(chosen), device="cpu", folder=tmp_path / "run")
    best = run.record.best
    assert [entry.val for entry in run.record.epochs] == values
    assert (best.epoch, best.val, best.test) == (epoch, values[epoch], 7.0)
    assert best.smoothed == (None if smoothed is None else pytest.approx(smoothed))
    written = json.loads((tmp_path / "run" / "record.json").read_text())
    assert set(written["best"]) == {"epoch", "val", "test"} | ({"smoothed"} if width > 1 else set())
    assert "1.0" in (tmp_path / "run" / "metrics.csv").read_text()


def test_smoothing_survives_an_interruption(tmp_path):
    chosen = small(epochs=4, smooth_validation=3)
    data = data_for(chosen)
    whole = train(chosen, data=data, device="cpu")
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(5))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    assert resumed.record.best == whole.record.best
    assert resumed.record.best.smoothed is not None


def test_patience_stops_early():
    chosen = small(epochs=30, patience=2, learning_rate=0.5)
    run = train(chosen, data=data_for(chosen), device="cpu")
    last = run.record.epochs[-1].epoch
    assert last < 29
    assert last - run.record.best.epoch == 2


@pytest.mark.parametrize("precision", ["64", "bf16", "tf32"])
def test_other_precisions_train(precision):
    chosen = small("peptides-func", epochs=1)
    run = train(chosen, data=data_for(chosen), device="cpu", precision=precision)
    assert math.isfinite(run.record.epochs[0].train_loss)
    assert run.record.precision == precision


def test_refusals(tmp_path):
    chosen = small()
    data = data_for(chosen)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("something")
    with pytest.raises(InputError, match="already exists"):
        train(chosen, data=data, folder=tmp_path / "full", device="cpu")
    with pytest.raises(InputError, match="no run to resume"):
        train(chosen, data=data, folder=tmp_path / "full", device="cpu", resume=True)
    with pytest.raises(InputError, match="in memory"):
        train(chosen, data=data, device="cpu", resume=True)
    with pytest.raises(InputError, match="no targets"):
        train(chosen, data=replace(data, y=None), device="cpu")
    with pytest.raises(InputError, match="no graph in split 'val'"):
        train(chosen, data=replace(data, val=data.val[:0]), device="cpu")
    with pytest.raises(InputError, match="precision is '8'"):
        train(chosen, data=data, device="cpu", precision="8")
    with pytest.raises(InputError, match="device is 'abacus'"):
        train(chosen, data=data, device="abacus")
    with pytest.raises(InputError, match="is not a folder"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no recipe.json"):
        open_run(tmp_path / "full")
    train(chosen, data=data, folder=tmp_path / "run", device="cpu")
    other = replace(chosen, training=replace(chosen.training, epochs=9))
    with pytest.raises(InputError, match="another recipe"):
        train(other, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    (tmp_path / "run" / "best.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        open_run(tmp_path / "run")


def test_a_full_disk_is_an_input_error_and_loses_nothing(tmp_path, monkeypatch):
    chosen = small(epochs=4)
    data = data_for(chosen)
    whole = train(chosen, data=data, device="cpu")
    original, writes = checkpoint.write_whole, []

    def fills_up(path, write):
        writes.append(path)
        if len(writes) > 6:

            def no_space(part):
                part.write_bytes(b"half a file")
                raise OSError(28, "No space left on device")

            return original(path, no_space)
        return original(path, write)

    monkeypatch.setattr(checkpoint, "write_whole", fills_up)
    with pytest.raises(InputError, match=r"The disk is full: .* --resume"):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu")
    monkeypatch.undo()
    assert not list((tmp_path / "run").rglob("*.part"))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    for name, value in weights(whole).items():
        assert torch.equal(value, resumed.model.state_dict()[name])


def test_files_are_whole_or_absent(tmp_path):
    write_text(tmp_path / "a.txt", "before")

    def breaks(part):
        part.write_text("half")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        write_whole(tmp_path / "a.txt", breaks)
    assert (tmp_path / "a.txt").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="could not be written"):
        write_text(tmp_path / "file" / "inside.txt", "no")


def test_without_the_test_split_nothing_reads_it_until_the_run_is_tested(tmp_path, monkeypatch):
    chosen = small()
    data = data_for(chosen)
    read = []
    evaluate = run_module.evaluate
    monkeypatch.setattr(run_module, "evaluate", lambda learner, split: read.append(split) or evaluate(learner, split))
    run = train(chosen, data=data, folder=tmp_path / "run", device="cpu", test=False)
    assert set(read) == {"val"}
    assert run.record.test is None
    saved = json.loads((tmp_path / "run" / "record.json").read_text())
    assert saved["best"]["test"] is None
    assert "test" not in saved["recipe"]["given"]
    opened = open_run(tmp_path / "run", device="cpu", data=data)
    assert opened.record.ended
    run_module.record_test(opened)
    assert read[-1] == "test"
    whole = train(chosen, data=data, device="cpu")
    tested = json.loads((tmp_path / "run" / "record.json").read_text())
    best = {name: value for name, value in vars(whole.record.best).items() if name not in ("smoothed", "loss")}
    assert tested["best"] == json.loads(json.dumps(best))
    run_module.record_test(opened)
    assert read.count("test") == 2  # once for each run


def test_a_run_has_ended_when_its_epochs_or_its_patience_have(tmp_path):
    chosen = small(epochs=30, patience=1)
    run = train(chosen, data=data_for(chosen), folder=tmp_path / "run", device="cpu", test=False)
    assert len(run.record.epochs) < 30
    assert run.record.ended
    run.record.epochs = run.record.epochs[: run.record.best.epoch + 1]
    assert not run.record.ended
