"""The queue: workers that end with it however it ends, failures that stop nothing else, and pieces of any length."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from campaign_files import SMALL, adopted, values
from records import write_run

from ckgconv.campaigns import queue
from ckgconv.campaigns.beginning import Beginning
from ckgconv.campaigns.folder import CampaignFolder
from ckgconv.campaigns.progress import FAILED, RUNNING, STOPPED, WAITING, progress_of
from ckgconv.campaigns.queue import QueueSettings, all_failed, train_all
from ckgconv.checks import InputError
from ckgconv.engine.lock import Holder, holder_of, locked

LONG = [*SMALL[:-2], "training.epochs=100000", "training.warmup_epochs=0"]


def trained(folder: CampaignFolder, **settings):
    said = []
    with locked(folder.path) as lock:
        found = train_all(folder, QueueSettings(device="cpu", **settings), lock, said.append)
    return found, said


def wait_until(condition, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture
def workers(monkeypatch):
    """Puts a program in the place of every worker."""

    def put(program: str) -> None:
        class Replaced(queue.Task):
            @property
            def command(self):
                return [sys.executable, "-c", program, self.name]

        monkeypatch.setattr(queue, "Task", Replaced)

    return put


def test_a_run_that_fails_keeps_its_sentence_and_the_others_go_on(tmp_path, workers):
    folder = adopted(tmp_path, grid={"seeds": [0, 1]})
    workers("import sys; print('first'); print('Error: No luck.'); sys.exit(2 * sys.argv[1].endswith('seed0'))")
    found, said = trained(folder)
    assert [each.state for each in found] == [FAILED, WAITING]
    assert found[0].failure == "No luck."
    assert [line.split(": ", 1)[1] for line in said] == [
        "started",
        "failed: No luck.",
        "started",
        "stopped after epoch 0",
    ]
    assert not all_failed(found)
    (tmp_path / "logs").rename(tmp_path / "earlier")
    _, said = trained(folder)
    assert len(said) == 2  # the other run alone
    workers("print(1 / 0)")
    retried, said = trained(folder, retry=True)
    assert [each.failure for each in retried] == ["ZeroDivisionError: division by zero"] * 2
    assert all_failed(retried)


def test_runs_can_be_chosen_by_their_names(tmp_path, workers):
    folder = adopted(tmp_path, grid={"seeds": [0, 1, 10]})
    workers("print('Error: tried'); raise SystemExit(2)")
    _, said = trained(folder, only=("*-seed0", "*-seed10"))
    tried = [planned.seed for planned in folder.campaign().runs() if planned.name in folder.failures()]
    assert tried == [0, 10]
    assert len(said) == 4
    with pytest.raises(InputError, match=r"--only \*-seed2 matches no run: .* '\*' stands for any text"):
        trained(folder, only=("*-seed2",))


def test_a_piece_ends_at_checkpoints_and_trains_at_least_an_epoch(tmp_path):
    folder = adopted(tmp_path, grid={"seeds": [0, 1, 2]})
    found, said = trained(folder, at_once=2, seconds=0)
    assert [(each.state, each.done) for each in found] == [(STOPPED, 1), (STOPPED, 1), (WAITING, 0)]
    assert found[0].record.at_once == 2
    assert not all_failed(found)
    said = [re.sub(r"after \d+ s", "after N s", line.split(": ")[1]) for line in said]
    assert sorted(said) == sorted(["started", "first epoch after N s", "stopped after epoch 1"] * 2)


def heed_interrupts() -> None:
    """Tests that a shell runs in the background, and their children, would ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def started(tmp_path):
    """Starts `ckgconv campaign` in a process of its own."""
    file = tmp_path / "long.json"
    file.write_text(json.dumps(values(name="long", grid={"changes": [LONG]})))
    processes = []

    def start() -> subprocess.Popen:
        command = [
            sys.executable,
            "-m",
            "ckgconv",
            "campaign",
            str(file),
            "--out",
            str(tmp_path / "c"),
            "--device",
            "cpu",
        ]
        options = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "preexec_fn": heed_interrupts}
        processes.append(subprocess.Popen(command, **options))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_campaign_goes_on_after_any_end(tmp_path, started):
    folder, reached = CampaignFolder(tmp_path / "c"), 0

    def epochs() -> int:
        if not (folder.path / "history.json").exists() or not (folder.path / "campaign.json").exists():
            return 0
        record = folder.record(folder.campaign().runs()[0])
        return 0 if record is None else len(record.epochs)

    for ending, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        process = started()
        wait_until(lambda reached=reached: epochs() > reached)
        assert progress_of(folder)[0].state == RUNNING
        process.send_signal(ending)
        _, errors = process.communicate()
        assert process.returncode == code, errors
        assert "Traceback" not in errors
        assert code < 0 or "Interrupted: a training goes on with --resume, a campaign by the same command" in errors
        wait_until(lambda: holder_of(folder.path) is None, 20.0)  # no worker is left
        assert epochs() > reached
        reached = epochs()
    (tmp_path / "c").rename(tmp_path / "moved")
    found, _ = trained(CampaignFolder(tmp_path / "moved"), seconds=0)
    assert (found[0].state, found[0].done) == (STOPPED, reached + 1)
    log = (tmp_path / "moved" / "logs" / f"{found[0].planned.name}.txt").read_text()
    assert log.count("epoch 1:") == 1  # it began once


def test_a_worker_that_was_killed_is_a_failure(tmp_path, workers):
    workers("import os; os.kill(os.getpid(), 9)")
    found, _ = trained(adopted(tmp_path))
    assert found[0].failure == "its process was ended by SIGKILL."


def test_a_run_that_the_gpu_ended_is_begun_again(tmp_path, workers):
    folder = adopted(tmp_path, grid={"seeds": [0, 1]})
    once = tmp_path / "failed"
    workers(
        f"import sys, pathlib; once = pathlib.Path({str(once)!r}); first = not once.exists(); once.touch();"
        f"print('Error: The GPU failed: gone.'); sys.exit({queue.GPU_FAILED} if first else 0)"
    )
    _, said = trained(folder)
    name = folder.campaign().runs()[0].name
    assert said[:3] == [
        f"{name}: started",
        f"{name}: will go on from its checkpoint: The GPU failed: gone.",
        f"{name}: started",
    ]
    assert not folder.failures()
    workers(f"print('Error: The GPU failed: gone.'); raise SystemExit({queue.GPU_FAILED})")
    _, said = trained(folder)
    assert len(said) == 2 * 2 * (1 + queue.ATTEMPTS)
    assert set(folder.failures().values()) == {"The GPU failed: gone."}


def test_a_worker_that_does_not_end_is_killed(tmp_path, workers, monkeypatch):
    workers("import time; time.sleep(600)")
    monkeypatch.setattr(queue, "PATIENCE", 0.1)
    folder = adopted(tmp_path)

    def interrupt(line: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with locked(tmp_path) as lock, pytest.raises(SystemExit) as stop:
        train_all(folder, QueueSettings(device="cpu"), lock, interrupt)
    assert stop.value.code == 143
    assert holder_of(tmp_path) is None


def test_runs_start_only_where_an_epoch_fits(tmp_path):
    folder = adopted(tmp_path, grid={"seeds": [0, 1]})
    first, second = folder.campaign().runs()
    with locked(tmp_path) as lock:
        made = queue.Queue(folder, QueueSettings(), lock, print, [], time.time() + 50, starts=1)
        assert made._fits(second)  # nothing is known about its epochs
        write_run(folder.run(first), 0, None, first.resolved(), epochs=1, wall_s=60.0)
        assert not made._fits(second)
        made.starts = 0
        assert made._fits(second)  # or no piece would ever train it
        made.starts, made.until = 1, None
        assert made._fits(second)
    assert str(Holder(7, "here")) == "process 7 on here"


def test_what_a_worker_does_before_its_first_epoch_is_said(tmp_path, workers):
    folder = adopted(tmp_path)
    (planned,) = folder.campaign().runs()
    folder.log(planned).parent.mkdir()
    folder.log(planned).write_text("note: Of an earlier piece.\n")
    workers("print('note: Compiling.\\nA warning.\\nepoch 1: loss 1\\nnote: Later.\\nepoch 2: loss 1')")
    _, said = trained(folder)
    assert [re.sub(r"\d+ s", "N s", line.split(": ", 1)[1]) for line in said] == [
        "started",
        "Compiling.",
        "first epoch after N s",
        "stopped after epoch 0",
    ]


def test_a_line_is_read_once_it_is_whole(tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("note: one\nnote: tw")
    beginning = Beginning(log, 0)
    assert beginning.news() == ["one"]
    assert beginning.news() == []
    log.write_text("note: one\nnote: two\n")
    assert beginning.news() == ["two"]
    assert not beginning.over
    log.unlink()
    assert beginning.news() == []


def test_missing_data_is_fetched_once(tmp_path, monkeypatch):
    folder = adopted(tmp_path / "c", grid={"recipes": ["mnist"], "changes": [[]], "seeds": [0, 1]})
    fetched, said = [], []
    monkeypatch.setattr(queue, "load", lambda data, folder: fetched.append(data.name))
    queue._fetch_data(progress_of(folder), QueueSettings(data_dir=tmp_path), said.append)
    assert fetched == ["mnist"]
    assert said == ["mnist: fetching the data set"]
