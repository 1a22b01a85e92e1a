"""Derivatives that a backward pass written by hand does not compute by itself.

Such a pass computes first derivatives in reverse mode. Its specification in plain torch computes all others:

- under a transform of `torch.func` (grad, vmap, jvp, hessian, …) and in forward mode the specification runs instead;
- where the gradient is itself to be differentiated (`create_graph=True`), the backward pass differentiates the
  specification, or refuses with a sentence. `once_differentiable` of torch is no such refusal: where the incoming
  gradient is a constant, it returns another one, and the second derivative is zero without an error.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._C import _functorch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad

from ckgconv.checks import InputError, require

Gradients = TypeVar("Gradients")


def under_transform() -> bool:
    """Whether a transform of `torch.func`, or forward mode, follows the operations: both need plain torch."""
    if torch.compiler.is_compiling():
        return False
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def will_be_differentiated(gradient: Tensor) -> bool:
    """Within a backward pass: whether its result will itself be differentiated, or many gradients come at once."""
    if torch.compiler.is_compiling():  # a compiled backward pass cannot be differentiated, which torch says itself
        return False
    return torch.is_grad_enabled() or under_transform() or _functorch.is_legacy_batchedtensor(gradient)


def specification_gradients(
    formula: Callable[..., Tensor], inputs: Sequence[Tensor], needed: Sequence[bool], gradient: Tensor
) -> list[Tensor | None]:
    """Gradients of formula(*inputs) for the inputs that need one; differentiable where grad mode is on."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Aliases: one input may depend on another, and each gradient must be that of its own argument only.
        own = [value.view_as(value) if need else value for value, need in zip(inputs, needed, strict=True)]
        wanted = [value for value, need in zip(own, needed, strict=True) if need]
        found = iter(torch.autograd.grad(formula(*own), wanted, gradient, create_graph=again, allow_unused=True))
    return [next(found) if need else None for need in needed]


def first_derivatives_only(name: str) -> Callable[[Callable[..., Gradients]], Callable[..., Gradients]]:
    """Decorator of a backward pass without a specification to differentiate; `name` is what computes it."""

    def decorate(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
        @wraps(backward)
        def checked(ctx: Any, *gradients: Tensor) -> Gradients:
            if any(will_be_differentiated(gradient) for gradient in gradients if gradient is not None):
                raise InputError(
                    f"A second derivative was asked for (create_graph=True), but {name} computes first derivatives "
                    f"only: undo `accelerate` with ckgconv.backends.plain(model), which computes all of them."
                )
            return backward(ctx, *gradients)

        return checked

    return decorate


def readable(values: Tensor) -> bool:
    """Whether values can be looked at: under `torch.func.vmap` there are many in place of each."""
    while _functorch.is_functorch_wrapped_tensor(values):
        if _functorch.is_batchedtensor(values):
            return False
        values = _functorch.get_unwrapped(values)
    return True


def assign(target: Tensor, value: Tensor) -> None:
    """target ← value without a gradient, also where `torch.func` refuses to write into tensors from outside it.

    Running statistics are such tensors. Under `vmap` each member of an ensemble needs its own.
    """
    if not under_transform():
        target.copy_(value.detach())
        return
    with temporarily_clear_interpreter_stack():
        (held, members), (plain, many) = _unwrapped(target), _unwrapped(value)
        require(
            members == many,
            "Running statistics were to be written under torch.func.vmap, but all members share them: stack them with "
            "torch.func.stack_module_state, or evaluate (model.eval()).",
        )
        held.copy_(plain)


def _unwrapped(values: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """The tensor behind all transforms, ensembles as its first dimensions, and the levels of these."""
    levels, places = [], []
    while _functorch.is_functorch_wrapped_tensor(values):
        if _functorch.is_batchedtensor(values):
            levels.append(_functorch.maybe_get_level(values))
            places.append(_functorch.maybe_get_bdim(values))
        values = _functorch.get_unwrapped(values)
    for number, place in enumerate(reversed(places)):
        values = values.movedim(place + number, 0)
    return values.detach(), tuple(levels)
