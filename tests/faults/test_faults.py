"""A sample of `make faults`: runs that are stopped go on bit for bit, and settings of all sorts end in a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "command",
    [
        ["interruptions.py", "--every", "31", "--random", "2"],
        ["folders.py", "--cases", "10"],
        ["settings.py", "--cases", "30"],
    ],
    ids=["interruptions", "folders", "settings"],
)
def test_a_sample(command):
    script, *options = command
    done = subprocess.run(
        [sys.executable, str(HERE / script), *options],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
