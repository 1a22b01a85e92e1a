"""The process of one run: pieces of training that add up to the whole, and no test before a campaign is final."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from campaign_files import adopted, campaign

from ckgconv import train
from ckgconv.campaigns import worker
from ckgconv.campaigns.worker import Task, work
from ckgconv.engine import run as run_module


@pytest.fixture
def splits(monkeypatch):
    """Splits that are read while runs are trained."""
    read = []
    evaluate = run_module.evaluate
    monkeypatch.setattr(run_module, "evaluate", lambda learner, split: read.append(split) or evaluate(learner, split))
    return read


def task_of(folder, **more) -> Task:
    return Task(str(folder.path), folder.campaign().runs()[0].name, "cpu", at_once=2, **more)


def test_pieces_add_up_to_an_uninterrupted_run_and_test_waits_for_final(tmp_path, splits, capsys):
    folder = adopted(tmp_path / "first")
    planned = folder.campaign().runs()[0]
    for epochs in (1, 2, 3):
        assert len(folder.record(planned).epochs) if epochs > 1 else True
        work(task_of(folder, until=0.0, threads=1))
        assert len(folder.record(planned).epochs) == epochs
    record = folder.record(planned)
    assert record.ended
    assert record.at_once == 2
    work(task_of(folder))  # nothing is left to do
    assert set(splits) == {"val"}
    assert '"test": null' in (folder.run(planned) / "record.json").read_text()
    assert capsys.readouterr().out.count("epoch") >= 3
    (tmp_path / "first").rename(tmp_path / "moved")
    folder = type(folder)(tmp_path / "moved")
    folder.adopt(campaign(final=True))
    work(task_of(folder))
    work(task_of(folder))
    assert splits.count("test") == 1
    whole = train(planned.resolved(), planned.seed, device="cpu").record
    tested = folder.record(planned)
    assert tested.best == whole.best
    assert [entry.val for entry in tested.epochs] == [entry.val for entry in whole.epochs]


def test_a_final_campaign_tests_a_run_after_its_last_epoch(tmp_path, splits):
    folder = adopted(tmp_path, final=True)
    work(task_of(folder, until=0.0))
    assert "test" not in splits
    work(task_of(folder))
    assert splits.count("test") == 1
    assert folder.record(folder.campaign().runs()[0]).test is not None


def test_a_run_killed_before_it_began_starts_again(tmp_path):
    folder = adopted(tmp_path)
    planned = folder.campaign().runs()[0]
    folder.run(planned).mkdir(parents=True)
    (folder.run(planned) / ".recipe.json.1.part").write_text("{")
    work(task_of(folder, until=0.0))
    assert len(folder.record(planned).epochs) == 1


def test_a_mistake_is_a_sentence_and_the_task_travels_as_json(tmp_path, monkeypatch, capsys):
    folder = adopted(tmp_path)
    monkeypatch.setattr(worker, "end_with_parent", lambda: None)
    task = Task(str(tmp_path), folder.campaign().runs()[0].name, "abacus", 1)
    monkeypatch.setattr(sys, "argv", ["worker", task.command[-1]])
    with pytest.raises(SystemExit) as stop:
        worker.main()
    assert stop.value.code == 2
    assert capsys.readouterr().out.startswith("Error: device is 'abacus': choose one of")
    assert json.loads(task.command[-1])["until"] is None


def test_the_end_of_its_parent_interrupts_the_work(tmp_path, monkeypatch):
    """The work is stopped as by Ctrl-C; only if that fails the process ends at once."""
    done = []
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    monkeypatch.setattr(worker.os, "_exit", done.append)
    monkeypatch.setattr(worker._thread, "interrupt_main", lambda: done.append("interrupted"))
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as parent:
        monkeypatch.setattr(sys, "stdin", parent)
        worker.end_with_parent()
        os.write(writing, b"alive")
        assert done == []
        os.close(writing)
        until = time.monotonic() + 10
        while len(done) < 2 and time.monotonic() < until:
            time.sleep(0.01)
    assert done == ["interrupted", worker.INTERRUPTED]


def test_a_worker_started_in_the_background_is_interrupted_too():
    """A shell starts background jobs with SIGINT ignored, and children inherit that."""
    program = """if True:
        import time
        from ckgconv.campaigns import worker
        worker.end_with_parent()
        try:
            print("ready", flush=True)
            for _ in range(2000):
                time.sleep(0.01)
        except KeyboardInterrupt:
            print("interrupted")
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout.readline() == "ready\n"
        process.stdin.close()
        assert process.stdout.read() == "interrupted\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), worker.INTERRUPTED),
        (torch.AcceleratorError("CUDA error: out of sorts\nmore"), worker.GPU_FAILED),
        (RuntimeError("Triton Error [CUDA]: device busy"), worker.GPU_FAILED),
    ],
)
def test_exit_codes_say_how_the_work_ended(monkeypatch, capsys, error, code):
    def fail(task):
        raise error

    monkeypatch.setattr(worker, "end_with_parent", lambda: None)
    monkeypatch.setattr(worker, "work", fail)
    monkeypatch.setattr(sys, "argv", ["worker", Task("c", "r", "cpu", 1).command[-1]])
    with pytest.raises(SystemExit) as stop:
        worker.main()
    assert stop.value.code == code
    printed = capsys.readouterr().out
    assert printed.startswith("Error: The GPU failed: ") == (code == worker.GPU_FAILED)
    assert "more" not in printed
    monkeypatch.setattr(worker, "work", lambda task: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        worker.main()
