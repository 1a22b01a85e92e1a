"""Two processes with gloo train the same network as one process with the same batches, batch statistics included."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ckgconv.engine import checkpoint

SCRIPT = Path(__file__).with_name("parallel_script.py")


OWN_PARTS = Path(__file__).with_name("own_parts_script.py")
UNEVEN = Path(__file__).with_name("uneven_script.py")
LAUNCHER = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]


def run(arguments: list[str]) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("script", [[SCRIPT, "zinc"], [SCRIPT, "pattern"], [SCRIPT, "cluster"], [OWN_PARTS]])
def test_two_processes_equal_one(tmp_path, script):
    command = [str(each) for each in script]
    run([*command, str(tmp_path / "one")])
    run([*LAUNCHER, *command, str(tmp_path / "two")])
    one, two = (checkpoint.load(tmp_path / folder / "best")[0] for folder in ("one", "two"))
    for key, value in one.items():
        # Adam divides a vanishing gradient by its own magnitude, so a rounding error of 1e-16 may become 1e-8.
        torch.testing.assert_close(two[key], value, rtol=0, atol=1e-6)
    records = [json.loads((tmp_path / folder / "record.json").read_text()) for folder in ("one", "two")]
    for entry, other in zip(records[0]["epochs"], records[1]["epochs"], strict=True):
        assert other["val"] == pytest.approx(entry["val"], rel=1e-7)


def test_a_process_without_graphs_takes_part_in_every_metric():
    one = run([str(UNEVEN)])
    assert one.count("\n") == 23
    assert run([*LAUNCHER, str(UNEVEN)]) == one


def test_no_thread_of_the_connections_outlives_the_interpreters_exit():
    printed = run([*LAUNCHER, str(Path(__file__).with_name("closing_script.py"))])
    assert sorted(printed.split()) == ["0:closed", "1:closed"]
