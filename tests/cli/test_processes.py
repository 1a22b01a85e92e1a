"""The documented torchrun command, on two processes with gloo; and what remains of a run that loses one of them."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from ckgconv.checks import InputError
from ckgconv.cli import processes

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "ckgconv"]
SMALL = ["model.width=4", "model.blocks=1", "model.steps=2", "data.limit=5", "training.batch_size=4"]
MOST_SECONDS = 60


def torchrun(*arguments: object) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run([*TORCHRUN, *map(str, arguments)], capture_output=True, text=True, timeout=5 * MOST_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.stdout


def test_train_resume_evaluate_and_predict():
    train = ["train", "zinc-demo", "--set", *SMALL, "training.epochs=1", "--device", "cpu", "--out", "many"]
    out = torchrun(*train, "--seed", 0, 1)
    assert out.count("always the training mean") == 2
    assert out.count("over 2 seeds") == 1
    resumed = json.loads(torchrun(*train, "--seed", 0, 1, "--resume", "--json"))
    assert [run["run"] for run in resumed] == ["many/seed0", "many/seed1"]
    best = json.loads(Path("many/seed0/record.json").read_text())["best"]
    assert resumed[0]["best"] == best
    evaluated = json.loads(torchrun("evaluate", "many/seed0", "--json", "--device", "cpu"))
    assert evaluated["value"] == pytest.approx(best["test"])
    together = json.loads(torchrun("evaluate", "many/seed0", "many/seed1", "--json", "--device", "cpu"))
    assert together["members"][0] == pytest.approx(best["test"])
    Path("m.csv").write_text("smiles\nCCO\nnonsense\n")
    predicted = json.loads(torchrun("predict", "many/seed0", "m.csv", "-o", "p.csv", "--json", "--device", "cpu"))
    assert predicted == {"out": "p.csv", "rows": 2, "predicted": 1, "invalid": 1}
    assert len(list(csv.DictReader(Path("p.csv").read_text().splitlines()))) == 2


@pytest.fixture
def two_processes(tmp_path):
    """A long run in two processes, started as SLURM would, after its first epoch."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ckgconv", "train", "zinc-demo", "--set", *SMALL, "training.epochs=100000"]
    started = [
        subprocess.Popen(
            [*command, "--device", "cpu", "--out", "run", "--json"],
            env=os.environ
            | {"WORLD_SIZE": "2", "RANK": rank, "LOCAL_RANK": rank, "GROUP_WORLD_SIZE": "1"}
            | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in "01"
    ]
    while not Path("run/checkpoints/000000.json").exists():
        assert all(process.poll() is None for process in started)
        time.sleep(0.05)
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_the_others_end_with_a_sentence(two_processes):
    """Without torchrun, which would stop them; the first process, which the others are connected to, is lost."""
    first, second = two_processes
    first.kill()
    _, err = second.communicate(timeout=MOST_SECONDS)
    assert second.returncode == 1
    assert err.strip() == processes.LOST


def test_torchrun_ends_when_a_process_is_killed():
    train = ["train", "zinc-demo", "--set", *SMALL, "training.epochs=100000", "--device", "cpu", "--out", "run"]
    agent = subprocess.Popen([*TORCHRUN, *train], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not Path("run/checkpoints/000000.json").exists():
        assert agent.poll() is None
        time.sleep(0.05)
    workers = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    os.kill(int(workers[-1]), signal.SIGKILL)
    _, err = agent.communicate(timeout=MOST_SECONDS)
    assert agent.returncode == 1
    assert processes.LOST in err or processes.STOPPED in err
    assert "[rank" not in err  # how torch marks the traceback of a process


def test_a_mistake_is_told_once(monkeypatch, tmp_path, capsys):
    file = tmp_path / "error.json"
    monkeypatch.setenv(processes.ERROR_FILE, str(file))
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        processes.tell(InputError("It is wrong: repair it."))
    assert capsys.readouterr().err == "Error: It is wrong: repair it.\n"
    assert json.loads(file.read_text())["message"]["extraInfo"]["py_callstack"] == "Error: It is wrong: repair it."
    monkeypatch.delenv(processes.ERROR_FILE)
    processes.tell(InputError("It is wrong: repair it."))
    assert capsys.readouterr().err == "Error: It is wrong: repair it.\n"


def test_only_a_lost_connection_becomes_a_sentence(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    before = signal.getsignal(signal.SIGTERM)
    for error in (dist.DistBackendError("NCCL watchdog"), RuntimeError("[gloo/transport] Connection closed by peer")):
        with pytest.raises(SystemExit) as stop, processes.ending_together():
            raise error
        assert (stop.value.code, capsys.readouterr().err.strip()) == (1, processes.LOST)
    with pytest.raises(RuntimeError, match="mat1 and mat2"), processes.ending_together():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(SystemExit) as stop, processes.ending_together():
        signal.raise_signal(signal.SIGTERM)
    assert (stop.value.code, capsys.readouterr().err.strip()) == (processes.TERMINATED, processes.STOPPED)
    assert signal.getsignal(signal.SIGTERM) == before
