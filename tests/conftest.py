import os
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# Without a GPU the kernels are run by Triton's interpreter, which is chosen when they are first loaded.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# No deadline: the first call of an operation may compile or allocate; no stored examples: each run is the same.
settings.register_profile("ckgconv", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("ckgconv")


@pytest.fixture
def double():
    """Tests that need float64 everywhere."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
