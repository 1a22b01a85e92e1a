"""The Triton kernels compile for a Hopper GPU and fit its shared memory, also on a machine without one."""

import json
import os
import subprocess
import sys
from pathlib import Path

from on_device import needs_triton

# Bytes available to a program on compute capability 9.0.
LIMIT = 232_448


@needs_triton
def test_kernels_of_the_widest_recipe_fit(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    script = Path(__file__).with_name("hopper_script.py")
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    sizes = json.loads(done.stdout)
    assert len(sizes) == 42
    assert max(sizes.values()) <= LIMIT, sizes
