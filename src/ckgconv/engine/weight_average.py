"""An exponential moving average of the weights, which is evaluated in their place.

    a ← d a + (1 - d) θ        after every step, with a = θ at first and d = `training.ema_decay`

Statistics of norms are not averaged: the average is evaluated with those that training has tracked so far.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The average of a model's parameters.

    Args:
        model: its parameters are on their device, and stay the same tensors.
        decay: d.
        optimizer: where it averages the weights in its own update (`averages`), it is left to do so.
    """

    def __init__(self, model: nn.Module, decay: float, optimizer: torch.optim.Optimizer) -> None:
        self.parameters = dict(model.named_parameters())
        self.decay = decay
        own = getattr(optimizer, "averages", None)
        kept: list[Tensor] | None = None if own is None else own()
        self.in_optimizer = kept is not None
        self.values = [each.detach().clone() for each in self.parameters.values()] if kept is None else kept

    @torch.no_grad()
    def update(self) -> None:
        """After a step."""
        if not self.in_optimizer:
            torch._foreach_lerp_(self.values, self._trained(), 1 - self.decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with the average as its weights; the trained ones return afterwards, bit for bit."""
        trained = [value.clone() for value in self._trained()]
        torch._foreach_copy_(self._trained(), self.values)
        try:
            yield
        finally:
            torch._foreach_copy_(self._trained(), trained)

    def tensors(self) -> dict[str, Tensor]:
        """The average by the names of the parameters."""
        return dict(zip(self.parameters, self.values, strict=True))

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """What `tensors` returned, in place: a captured step writes there."""
        for name, value in self.tensors().items():
            value.copy_(tensors[name])

    def _trained(self) -> list[Tensor]:
        return [parameter.detach() for parameter in self.parameters.values()]
