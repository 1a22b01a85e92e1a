"""Runs in processes of their own: what each tells, here without a process; `tests/cli` starts real ones."""

import queue
from types import SimpleNamespace

import pytest
import torch

from ckgconv import InputError, recipe
from ckgconv.engine import side_by_side
from ckgconv.engine.side_by_side import Job
from ckgconv.recipes import with_value

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "data.limit=6", "training.epochs=2"]


def job(folder, **changes):
    chosen = recipe("zinc")
    for setting in SMALL:
        chosen = with_value(chosen, setting)
    return Job(chosen, 0, folder, device="cpu", **changes)


def test_a_process_tells_of_its_epochs(tmp_path):
    told, threads = queue.Queue(), torch.get_num_threads()
    side_by_side._train(3, job(tmp_path / "run"), threads, told)
    heard = side_by_side._heard(told)
    assert {each.place for each in heard} == {3}
    assert [each.epoch.epoch for each in heard if each.kind == "epoch"] == [0, 1]
    assert heard[-1].kind == "ended"
    assert side_by_side._heard(told) == []
    side_by_side._train(3, job(tmp_path / "run"), threads, told)
    assert "already exists" in side_by_side._heard(told)[0].sentence
    side_by_side._train(3, job(tmp_path / "run", resume=True), threads, told)
    assert side_by_side._heard(told)[-1].kind == "ended"


def test_a_process_that_ends_without_a_word_is_told(tmp_path):
    ended = SimpleNamespace(is_alive=lambda: False, exitcode=-9)
    with pytest.raises(InputError, match="ended with exit code -9, perhaps for want of memory: continue with --resume"):
        side_by_side._check_alive({0: ended}, queue.Queue(), [job(tmp_path)])


def test_two_at_once(tmp_path):
    """The only test that starts processes."""
    jobs, told = [job(tmp_path / "one"), job(tmp_path / "two")], []
    side_by_side.train_side_by_side(jobs, 2, told.append)
    epochs = [(each.place, each.epoch.epoch) for each in told if each.kind == "epoch"]
    assert sorted(epochs) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all((each.folder / "best.safetensors").exists() for each in jobs)


def test_one_at_a_time_needs_no_process(tmp_path):
    told = []
    side_by_side.train_side_by_side([job(tmp_path / "run")], 1, told.append)
    assert [each.epoch.epoch for each in told if each.kind == "epoch"] == [0, 1]
    side_by_side.train_side_by_side([], 2, told.append)
    assert side_by_side.cores() >= 1
