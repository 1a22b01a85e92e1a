"""Acceleration: the same models, computed by passes written for a device.

    model = accelerate(model, "cuda")

A pass is a subclass of a plain module of `nn`, with the same parameters and another forward; the plain module is its
specification. `accelerate` moves a model to a device and swaps in the subclasses that the device has for the model and
for its parts. Parameters, state dict and hooks stay; a model without an entry comes back as it is, its parts swapped
where they have one. Each pass falls back to the plain module for what it does not compute: float64, gradients in
evaluation mode, several processes.
"""

from typing import TypeVar

import torch
from torch import nn

from ckgconv.backends.cpu import PASSES as CPU_PASSES
from ckgconv.backends.cpu.memory import keep_freed_pages
from ckgconv.backends.cuda.supports import why_not_fused
from ckgconv.checks import InputError, require
from ckgconv.ops import dispatch

Model = TypeVar("Model", bound=nn.Module)

__all__ = ["accelerate", "checked_device", "plain", "why_not_fused"]


def accelerate(model: Model, device: torch.device | str | None = None) -> Model:
    """The model on a device, with that device's passes; changed in place, like `nn.Module.to`.

    On a CPU the process then keeps the memory of freed tensors for the next ones (`backends.cpu.memory`).

    Args:
        model: any module; `ckgconv.nn` modules inside it are accelerated.
        device: where it should run, by default where its parameters are.

    Example:
        >>> model = accelerate(CKGCN.from_recipe("zinc"), "cpu")
        >>> type(model.kernel).__name__
        'CPUKernel'
    """
    require(isinstance(model, nn.Module), f"The model is a {type(model).__name__}: give a torch module.")
    chosen = checked_device(device) if device is not None else _device_of(model)
    plain(model).to(chosen)
    swaps = passes(chosen)
    for part in model.modules():
        if type(part) in swaps and chosen.type == "cpu":
            keep_freed_pages()
        part.__class__ = swaps.get(type(part), type(part))
    return model


def plain(model: Model) -> Model:
    """The model without any device's passes, in place: what `accelerate` did, undone."""
    for part in model.modules():
        for kind in type(part).__mro__:
            if kind.__module__.startswith("ckgconv.nn."):
                part.__class__ = kind
                break
            if not kind.__module__.startswith(__name__):
                break
    return model


def checked_device(device: torch.device | str | int) -> torch.device:
    """The device, refused with a sentence where this machine does not have it."""
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"The device is {device!r}: choose 'cpu' or 'cuda'.") from error
    missing = chosen.type == "cuda" and not torch.cuda.is_available()
    require(not missing, f"The device is {device!r}, but torch sees no GPU: use 'cpu'.")
    require(chosen.type in ("cpu", "cuda", "mps"), f"The device is {device!r}: choose 'cpu' or 'cuda'.")
    return chosen


def _device_of(model: nn.Module) -> torch.device:
    """Where the parameters are; the CPU for a module without any."""
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def passes(device: torch.device) -> dict[type[nn.Module], type[nn.Module]]:
    """Plain module → accelerated subclass, on a device; empty where there are none."""
    if dispatch.runs_triton(device):
        from ckgconv.backends.cuda.passes import PASSES as CUDA_PASSES

        return CUDA_PASSES
    return CPU_PASSES if device.type == "cpu" else {}
