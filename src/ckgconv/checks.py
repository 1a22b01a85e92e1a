"""Checks of input. Each failure raises a sentence: which argument, which value, what to do.

Checks run before any computation, so that bad input never fails inside a Triton kernel.
"""

import os
import reprlib
from collections.abc import Sequence

import torch
from torch import Tensor

# How values appear in messages: a few of many, and the beginning of a long text.
LONGEST = 120
SHORT = reprlib.Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother, SHORT.maxlong = 3, LONGEST, LONGEST, 60


class InputError(ValueError):
    """The user's input cannot be used; the message says what to change."""


def require(condition: bool, sentence: str) -> None:
    """Raise InputError with `sentence` unless `condition` holds."""
    if not condition:
        raise InputError(sentence)


def shown(value: object) -> str:
    """A value in an error message, on one line and cut short where it is long."""
    try:
        return " ".join(SHORT.repr(value).split("\n"))
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"


def cut(text: str) -> str:
    """The beginning of a text in an error message."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def check_instance(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Refuse what is of another type; `wanted` says what to give."""
    if not isinstance(value, kind):  # only then: a network is long to show
        raise InputError(f"{name} is {shown(value)}: give {wanted}.")


def check_group(what: str, value: object) -> None:
    """Refuse what is no object of JSON, with half a sentence."""
    if not isinstance(value, dict):  # only then: the state of a run is long to show
        raise InputError(f"{what} is {shown(value)}, not a group of values")


def check_path(name: str, value: object) -> None:
    """Refuse what cannot be a path."""
    check_instance(name, value, (str, os.PathLike), "a path")


def check_finite(name: str, values: Tensor) -> None:
    """Refuse NaN and infinities, naming the first one."""
    # A sum is finite only where all values are, and takes a tenth of the time of looking at each of them.
    if not values.is_floating_point() or bool(values.sum().isfinite()) or bool(torch.isfinite(values).all()):
        return
    position = tuple(int(index) for index in (~torch.isfinite(values)).nonzero()[0])
    raise InputError(
        f"{name}{list(position)} is {values[position].item()}, but {name} must be finite: "
        f"replace or mask missing values before the model."
    )


def check_floating(name: str, values: Tensor, dtype: torch.dtype) -> None:
    """Refuse features whose dtype is not that of the parameters."""
    require(
        values.dtype == dtype,
        f"{name} has dtype {values.dtype}, but the model's parameters have {dtype}: convert with {name}.to({dtype}).",
    )


def check_index(name: str, values: Tensor, upper: int, meaning: str) -> None:
    """Refuse indices that are not int64 or lie outside 0 … upper - 1."""
    require(
        values.dtype == torch.int64,
        f"{name} has dtype {values.dtype}, but indices must be torch.int64: convert with {name}.long().",
    )
    if values.numel() == 0:
        return
    low, high = (int(value) for value in values.aminmax())
    worst = low if low < 0 else high
    require(
        low >= 0 and high < upper,
        f"{name} contains {worst}, but {meaning} must lie in 0 … {upper - 1}: "
        f"renumber {name} or enlarge what it indexes.",
    )


def check_device(**tensors: Tensor | None) -> None:
    """Refuse tensors of one call that are on different devices."""
    devices = {name: str(tensor.device) for name, tensor in tensors.items() if tensor is not None}
    require(
        len(set(devices.values())) <= 1,
        "The inputs are on different devices ("
        + ", ".join(f"{name} on {device}" for name, device in devices.items())
        + "): move them to one.",
    )


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Refuse a value that is none of the choices."""
    require(value in choices, f"{name} is {value!r}: choose one of {', '.join(str(choice) for choice in choices)}.")


def check_whole(name: str, value: object, least: int, most: int = 2**16) -> None:
    """Refuse what is not a whole number from `least` to `most`; True and False are none."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole and value >= least):  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}: give a whole number of at least {least}.")
    require(value <= most, f"{name} is larger than {most:,}: give a smaller number.")  # type: ignore[operator]


def check_tensor(name: str, values: object, remedy: str) -> None:
    """Refuse what is not a tensor."""
    require(isinstance(values, Tensor), f"{name} is a {type(values).__name__}, not a tensor: {remedy}")


def check_probability(name: str, value: float) -> None:
    """Refuse a probability outside 0 … 1."""
    require(0.0 <= value <= 1.0, f"{name} is {value}: give a probability between 0 and 1.")


def check_shape(name: str, values: Tensor, shape: tuple[int | None, ...], remedy: str) -> None:
    """Refuse what is no tensor of a shape; None in `shape` admits any size."""
    check_tensor(name, values, remedy)
    fits = values.dim() == len(shape) and all(
        expected is None or expected == actual for expected, actual in zip(shape, values.shape, strict=True)
    )
    if fits:
        return  # without a sentence, in which a traced program would fix its sizes
    expected_shape = "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"
    raise InputError(f"{name} has shape {list(values.shape)}, expected {expected_shape}: {remedy}")


def check_weights(name: str, values: Tensor) -> None:
    """Refuse negative, infinite or NaN edge weights, which define no random walk."""
    require(
        values.is_floating_point(),
        f"{name} has dtype {values.dtype}, but weights must be floating point: convert with {name}.float().",
    )
    check_finite(name, values)
    if values.numel() == 0:
        return
    lowest = float(values.detach().min())
    require(
        lowest >= 0,
        f"{name} contains {lowest}, but weights must be zero or positive, since a random walk takes an "
        f"edge with probability proportional to its weight: shift or drop the negative weights.",
    )
