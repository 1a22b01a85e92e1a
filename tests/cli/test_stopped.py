"""Commands that stop, and those that go on: signals, lost records, allocations of SLURM."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ckgconv.checks import InputError
from ckgconv.cli import processes
from ckgconv.data import save_packed, zinc
from ckgconv.engine.setup import process_count, process_rank

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "data.limit=12", "training.epochs=2"]


def test_a_saved_recipe_resumes_its_own_run_or_none(ckgconv):
    code, out, err = ckgconv("train", "zinc", "--seed", "7", "--set", *SMALL, "--out", "seven", "--json")
    assert code == 0, err
    best = json.loads(out)["best"]
    Path("seven/record.json").unlink()  # as after a kill between the first checkpoint and the record
    code, out, err = ckgconv("train", "seven/recipe.json", "--resume", "--json")
    assert code == 0, err
    assert [json.loads(out)[name] for name in ("run", "seed", "best")] == ["seven", 7, best]
    Path("seven/record.json").write_text("{")
    code, out, _ = ckgconv("train", "seven/recipe.json", "--out", "again", "--json")
    assert (code, json.loads(out)["seed"], json.loads(out)["best"]) == (0, 7, best)
    for file in [*Path("seven/checkpoints").iterdir(), Path("seven/best.json")]:
        file.unlink()
    for options in (["--resume"], ["--resume", "--seed", "0"], ["--out", "other"]):
        code, _, err = ckgconv("train", "seven/recipe.json", *options)
        assert (code, "seed and precision of its run are not known" in err) == (2, True)
    assert not Path("runs").exists()
    assert not Path("other").exists()


def test_seeds_that_have_not_begun_start_when_others_resume(ckgconv):
    assert ckgconv("train", "zinc", "--seed", "0", "--set", *SMALL, "--out", "many/seed0", "--json")[0] == 0
    command = ["train", "zinc", "--set", *SMALL, "--resume", "--json"]
    code, out, err = ckgconv(*command, "--seed", "0", "1", "--out", "many")
    assert code == 0, err
    assert [run["seed"] for run in json.loads(out)] == [0, 1]
    for options in (["--seed", "0", "1", "--out", "none"], ["--out", "none"]):
        code, _, err = ckgconv(*command, *options)
        assert (code, "none holds no run to resume: start it without --resume" in err) == (2, True)
    assert not Path("none").exists()


def test_two_seeds_without_a_test_split(ckgconv):
    data = zinc().limited(6)
    save_packed(replace(data, test=data.test[:0]), Path("mine.npz"))
    command = ["train", "zinc", "--set", *SMALL, "data.name=mine.npz", "--seed", "0", "1"]
    code, out, err = ckgconv(*command, "--out", "many")
    assert code == 0, err
    assert "no test split" in out
    assert ckgconv(*command, "--out", "more", "--json")[0] == 0


def test_an_allocation_of_slurm_is_no_job_of_several_processes(ckgconv, monkeypatch):
    for name, value in {"NTASKS": "4", "NNODES": "2", "JOB_NAME": "train", "PROCID": "0", "NODEID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    assert (process_count(), process_rank()) == (1, 0)
    code, out, err = ckgconv("train", "zinc", "--set", *SMALL, "--out", "alone", "--json")
    assert code == 0, err
    assert json.loads(out)["best"]["test"] > 0
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    monkeypatch.setenv("SLURM_PROCID", "3")
    assert (process_count(), process_rank()) == (4, 3)


@pytest.mark.parametrize("value", ["", "two", "-1", "0", "1e3", "9" * 30])
def test_a_number_of_processes_is_a_number(monkeypatch, value):
    monkeypatch.setenv("WORLD_SIZE", value)
    with pytest.raises(InputError, match="The environment variable WORLD_SIZE is"):
        process_count()


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [
        (signal.SIGTERM, processes.TERMINATED, processes.STOPPED_ALONE),
        (signal.SIGINT, 130, "Interrupted: a training goes on with --resume"),
    ],
)
def test_a_stopped_run_says_what_it_keeps(number, code, sentence):
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from ckgconv.cli import main; main()"
    command = [sys.executable, "-c", program, "train", "zinc", "--device", "cpu", "--out", "run", "--json"]
    settings = ["--set", *SMALL[:4], "training.epochs=100000"]
    started = subprocess.Popen([*command, *settings], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not Path("run/checkpoints/000000.json").exists():
        assert started.poll() is None
        time.sleep(0.05)
    os.kill(started.pid, number)
    _, err = started.communicate(timeout=600)
    assert started.returncode == code
    assert sentence in err
    assert "run keeps a checkpoint after epoch " in err
    assert "Traceback" not in err
    assert not list(Path("run").rglob(".*"))


def test_an_interruption_before_the_command_begins(ckgconv, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("ckgconv.cli.repeat_options", interrupted)
    code, _, err = ckgconv("info", "zinc")
    assert (code, err) == (130, f"Interrupted: {processes.GOES_ON}\n")
