"""Parameters whose shapes are known only after the first call, as in PyG's layers with in_channels=-1.

Until then a tree of `Unbuilt` modules holds a parameter of every name, so that an optimiser, `.to` and `deepcopy` work;
then the real modules are built and take these very parameters.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter, is_lazy

from ckgconv.checks import require


class Unbuilt(nn.Module):
    """Stands for a module whose sizes are not known.

    Args:
        like: a module with the same names.
        kept: a module inside it that is complete, a user's kernel.
    """

    def __init__(self, like: nn.Module, kept: nn.Module | None) -> None:
        super().__init__()
        for name, _ in like.named_parameters(recurse=False):
            self.register_parameter(name, UninitializedParameter())  # type: ignore[arg-type]
        for name, child in like.named_children():
            self.add_module(name, child if child is kept else Unbuilt(child, kept))

    def reset_parameters(self) -> None:
        """Nothing is drawn yet."""

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination.update({prefix + name: value for name, value in self._parameters.items()})

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """What another layer saved before its first call says nothing."""


def fill(unbuilt: nn.Module, built: nn.Module) -> None:
    """Give the unbuilt parameters the values of built ones, and put them in their place."""
    if not isinstance(unbuilt, Unbuilt):
        return
    for name, parameter in unbuilt.named_parameters(recurse=False):
        value = built.get_parameter(name)
        parameter.materialize(value.shape, value.device, value.dtype)  # type: ignore[attr-defined]
        with torch.no_grad():
            parameter.copy_(value)
        built.register_parameter(name, parameter)
    for name, child in unbuilt.named_children():
        fill(child, built.get_submodule(name))


def first_parameter(unbuilt: Unbuilt) -> UninitializedParameter:
    """One whose device and dtype are those that the module was moved to."""
    return next(value for value in unbuilt.parameters() if isinstance(value, UninitializedParameter))


def saved_shape(state_dict: Mapping[str, Any], name: str) -> torch.Size | None:
    """Of a saved parameter; None where there is none, or it had no shape yet."""
    value = state_dict.get(name)
    return value.shape if isinstance(value, Tensor) and not is_lazy(value) else None


def check_built(state_dict: Mapping[str, Any], prefix: str) -> None:
    """Refuse what a layer saved before its first call, where this one has its parameters."""
    require(
        not any(is_lazy(value) for name, value in state_dict.items() if name.startswith(prefix)),
        "The state was saved by a layer with in_channels=-1 before its first call, so it has no values: call that "
        "layer once, then save.",
    )
