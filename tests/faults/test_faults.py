"""A sample of `make faults`: runs that are stopped go on bit for bit, forged folders and settings end in a sentence."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from faults import folders, interruptions, settings
bad = settings.campaign(25, 0) + interruptions.campaign(every=50, count=1, seed=0) + folders.campaign(6, 0)
raise SystemExit("\\n".join(bad) if bad else 0)
"""


def test_a_sample():
    """In a process of its own, since each case is a fork of it."""
    found = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, found))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
