"""Full precision where autocast would round: stems and heads cost little, and raw coordinates span decades."""

import torch
from torch import Tensor


def without_autocast(x: Tensor) -> torch.autocast:
    """A context in which operations on the device of x keep the dtype of their inputs."""
    return torch.autocast(x.device.type, enabled=False)
