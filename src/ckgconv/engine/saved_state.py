"""The state in a checkpoint, checked before any of it is used: tensors have the names and shapes of the model and its
optimiser, and JSON values their types.

A digest reveals damage, but not files that somebody else wrote together with their digests.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import FailFast, Field, FiniteFloat, with_config
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ckgconv.checks import InputError, require
from ckgconv.engine.record import Record
from ckgconv.recipe.values import KEPT, read

# Tensors of a checkpoint for each of the model's: itself, the best one, an average and moments.
MOST_COPIES = 16
# The header of a file of tensors, at most about.
HEADER_BYTES = 2**22
# Moments of torch's optimisers, which check none of them: one of another shape would end the interpreter.
ADAM = ("step", "exp_avg", "exp_avg_sq")
MOMENTS: dict[type, tuple[str, ...]] = {torch.optim.Adam: ADAM, torch.optim.AdamW: ADAM}
MOMENTS[torch.optim.SGD] = ("momentum_buffer",)


@dataclass(frozen=True)
class Scale:
    """Of the targets, [T] or [1] each."""

    mean: Annotated[tuple[FiniteFloat, ...], FailFast()]
    spread: Annotated[tuple[FiniteFloat, ...], Field(min_length=1), FailFast()]


@with_config(KEPT)
@dataclass(frozen=True)
class Rest:
    """What a checkpoint stores as JSON beside the record."""

    scale: Scale
    groups: Annotated[tuple[dict[str, Any], ...], FailFast()] = ()


@dataclass(frozen=True)
class State:
    """What a checkpoint stores as JSON."""

    record: Record
    scale: Scale
    groups: tuple[Mapping[str, Any], ...]  # numbers of the parameter groups of an optimiser given in Python

    @classmethod
    def from_json(cls, values: Mapping[str, Any], outputs: int, where: str) -> "State":
        """The state in the JSON of a checkpoint; `where` names it in error messages."""
        record = Record.from_json(values.get("record"), where)
        try:
            rest = read({name: value for name, value in values.items() if name != "record"}, Rest)
        except InputError as error:
            raise InputError(f"{where} is damaged ({error}).") from error
        scale = rest.scale
        means, spreads = len(scale.mean), len(scale.spread)
        require(
            means == spreads and means in (1, outputs) and min(scale.spread) > 0,
            f"{where} has a scale of {means} means and {spreads} spreads for {outputs} outputs.",
        )
        return cls(record, scale, rest.groups)


def most_bytes(model: nn.Module) -> int:
    """Of a file of tensors that belongs to a model and its training."""
    tensors = model.state_dict().values()
    if any(is_lazy(tensor) for tensor in tensors):  # given in Python, and of no size before its first batch
        return 2**62
    return HEADER_BYTES + MOST_COPIES * sum(tensor.numel() * tensor.itemsize for tensor in tensors)


def check_tensors(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], what: str) -> None:
    """Refuse tensors with other names or shapes than `wanted`, or whole numbers in place of others."""
    for name in found.keys() ^ wanted.keys():
        require(False, f"{what} {'lack' if name in wanted else 'have'} {name!r}, against the recipe.")
    for name, value in ((name, value) for name, value in wanted.items() if not is_lazy(value)):
        fits = found[name].shape == value.shape and found[name].is_floating_point() == value.is_floating_point()
        require(
            fits,
            f"{name!r} of {what} has shape {list(found[name].shape)} and dtype {found[name].dtype}, not "
            f"{list(value.shape)} and {value.dtype}, which the recipe asks for.",
        )


@torch.no_grad()
def all_finite(model: nn.Module) -> bool:
    """Whether no parameter or statistic of a model is NaN or infinite; a GPU is waited for once."""
    floating = [value for value in model.state_dict().values() if value.is_floating_point() and value.numel()]
    largest = torch._foreach_norm(floating, ord=math.inf)
    return bool(torch.stack([value.double() for value in largest]).isfinite().all())


def check_moments(found: Mapping[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse moments, named `MOMENT.PARAMETER`, that the optimiser does not keep of the model's parameters."""
    parameters = dict(model.named_parameters())
    of_each: dict[str, dict[str, Tensor]] = {}
    for key, value in found.items():
        moment, _, name = key.partition(".")
        require(name in parameters, f"The moment {key!r} is one of a parameter that the recipe does not have.")
        of_each.setdefault(name, {})[moment] = value
    wanted = _moments(optimizer)
    # Those of a parameter without a gradient are missing; of all parameters never.
    require(bool(found) or not wanted or wanted == {"momentum_buffer"}, "The moments of the optimiser are missing.")
    unchecked = wanted is None and not any(group.get("fused") for group in optimizer.param_groups)
    for name, moments in of_each.items():
        kept = optimizer.state.get(parameters[name], {})
        if kept:  # an optimiser that has them before its first step
            check_tensors(moments, {each: value for each, value in kept.items() if isinstance(value, Tensor)}, name)
        elif not unchecked:
            listed = ", ".join(sorted(moments))
            require(wanted in (None, moments.keys()), f"The optimiser does not keep {listed} of {name!r}.")
            for moment, value in moments.items():
                _check_moment(f"{moment}.{name}", value, parameters[name])


def _moments(optimizer: torch.optim.Optimizer) -> set[str] | None:
    """Which moments one of torch's optimisers keeps; None: an optimiser of your own."""
    known = MOMENTS.get(type(optimizer))
    amsgrad = any(group.get("amsgrad") for group in optimizer.param_groups)
    return None if known is None else {*known, *(["max_exp_avg_sq"] if amsgrad else [])}


def _check_moment(key: str, value: Tensor, parameter: Tensor) -> None:
    """A count of steps, or a moment of each entry of the parameter."""
    found = f"The moment {key!r} has shape {list(value.shape)} and dtype {value.dtype}"
    if key.startswith("step."):
        counts = value.numel() == 1 and value.dtype in (torch.float32, torch.float64)  # what torch counts in
        require(counts, f"{found}, not one number in float32 or float64.")
        return
    fits = value.shape == parameter.shape and value.dtype == parameter.dtype
    require(fits, f"{found}, not {list(parameter.shape)} and {parameter.dtype}.")
