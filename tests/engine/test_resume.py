"""Runs of an earlier version resume to the weights that it would have trained; checkpoints keep within their budget.

tests/data/run-99a1078: `interrupted` is the folder of a run of commit 99a1078 on the CPU (zinc, seed 3, width 8, two
blocks, 24 graphs, batches of 8) after two of its four epochs. expected.safetensors is the last checkpoint of that run
without the interruption, expected.json its numbers and the machine that computed them.
"""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_data import small_dataset

from ckgconv import InputError, recipe, train
from ckgconv.engine import checkpoint, resume
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.record import load_record
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.run_folder import check_folder
from ckgconv.engine.watcher import Silence

OLD = Path(__file__).parents[1] / "data" / "run-99a1078"
EXPECTED = json.loads((OLD / "expected.json").read_text())


@pytest.fixture
def same_threads():
    """As many threads as the run had: with another number, sums are rounded in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(EXPECTED["threads"])
    yield
    torch.set_num_threads(before)


def tolerance() -> dict[str, float]:
    """Zero on the kind of machine that trained the run; elsewhere sums are rounded in another order."""
    here = (torch.__version__, torch.backends.cpu.get_cpu_capability())
    exact = here == (EXPECTED["torch"], EXPECTED["cpu_capability"])
    return {"rel": 0, "abs": 0} if exact else {"rel": 1e-6, "abs": 1e-6}


@pytest.mark.usefixtures("same_threads")
def test_a_run_of_an_earlier_version_resumes_to_its_weights(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(OLD / "interrupted", folder)
    watcher = Silence()
    first_epochs = []
    watcher.start = lambda run, first_epoch: first_epochs.append(first_epoch)
    run = train(read_recipe(folder / "recipe.json"), 3, folder=folder, resume=True, device="cpu", watcher=watcher)
    assert first_epochs == [2]
    allowed = tolerance()
    found, _ = checkpoint.load(folder / "checkpoints" / "000003")
    wanted = load_file(OLD / "expected.safetensors")
    # Since then a checkpoint also has the mean of the last epochs.
    assert {name for name in found if not name.startswith("mean.")} == set(wanted)
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=allowed["rel"], atol=allowed["abs"], msg=name)
    written = load_record(folder).to_json()
    assert written == run.record.to_json()
    assert written["parameters"] == EXPECTED["parameters"]
    assert written["best"] == pytest.approx(EXPECTED["best"], **allowed)
    for epoch, other in zip(written["epochs"], EXPECTED["epochs"], strict=True):
        assert {name: epoch[name] for name in other} == pytest.approx(other, **allowed)


def test_an_earlier_folder_is_checked_against_its_record():
    folder = OLD / "interrupted"
    chosen = read_recipe(folder / "recipe.json")
    check_folder(folder, chosen, 3, "32", resume=True)
    with pytest.raises(InputError, match="with seed 3, not 4"):
        check_folder(folder, chosen, 4, "32", resume=True)
    with pytest.raises(InputError, match="with precision 32, not 64"):
        check_folder(folder, chosen, 3, "64", resume=True)
    with pytest.raises(InputError, match="another recipe"):
        check_folder(folder, recipe("zinc"), 3, "32", resume=True)


def test_a_damaged_record_does_not_stop_a_run_from_resuming(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(OLD / "interrupted", folder)
    (folder / "record.json").write_text("{")
    run = train(read_recipe(folder / "recipe.json"), 3, folder=folder, resume=True, device="cpu")
    assert len(run.record.epochs) == 4
    assert load_record(folder).to_json() == run.record.to_json()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_undefined_scores_resume_as_they_would_go_on(tmp_path, monkeypatch, value):
    """Checkpoints distinguish NaN from infinity: which epoch is the best depends on it."""
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)
    monkeypatch.setattr("ckgconv.engine.run.evaluate", lambda learner, split: value)
    chosen = recipe("zinc")
    model = replace(chosen.model, width=8, blocks=1, steps=3)
    chosen = replace(chosen, model=model, training=replace(chosen.training, epochs=3, warmup_epochs=1, batch_size=3))
    data = small_dataset(chosen)

    class Stop(Silence):
        def epoch(self, entry):
            if entry.epoch == 1:
                raise KeyboardInterrupt

    whole = train(chosen, data=data, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train(chosen, data=data, device="cpu", folder=tmp_path / "run", watcher=Stop())
    resumed = train(chosen, data=data, device="cpu", folder=tmp_path / "run", resume=True)
    assert resumed.record.best.epoch == whole.record.best.epoch
    assert json.loads((tmp_path / "run" / "record.json").read_text())["best"]["val"] is None


def test_checkpoints_take_a_share_of_the_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(resume.time, "perf_counter", lambda: now[0])
    budget = CheckpointBudget()
    assert budget.allows()
    with budget:
        now[0] += 2.0
    assert not budget.allows()
    now[0] += 199.0
    assert not budget.allows()
    now[0] += 1.5
    assert budget.allows()
