"""Sum over the processes of a data-parallel run, so that several processes compute what one would."""

import torch.distributed as dist
from torch import Tensor


def several_processes() -> bool:
    """Whether more than one process trains the same model."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def all_reduce(value: Tensor) -> Tensor:
    """The sum of `value` over all processes; `value` itself where there is one. Carries no gradient."""
    if not several_processes():
        return value
    summed = value.detach().clone()
    dist.all_reduce(summed)
    return summed
