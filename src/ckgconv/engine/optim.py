"""Optimiser and schedule of a run.

All parameters alike, gradient norm clipped, and a learning rate set once per epoch e:

    e < W:  10⁻⁷ + e (base - 10⁻⁷)/W          else:  min + ½ (base - min)(1 + cos(π (e - W)/(E - W)))
"""

import math
from typing import Any

import torch
from torch import nn

from ckgconv.backends.cuda.adamw.naive import Moments, Rates
from ckgconv.backends.cuda.schedule import beside, together
from ckgconv.engine.optimizers import OPTIMIZERS, adamw
from ckgconv.ops import dispatch
from ckgconv.recipe import TrainingRecipe

# The rate of epoch 0, from which the warm-up rises.
START = 1e-7
# Entries that one block of a launch copies.
PIECE = 8192
# Tensors that one launch copies, as many as its arguments hold.
COPIED = 64


def optimizer(model: nn.Module, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """The recipe's optimiser on every parameter, biases and norms included."""
    parameters = list(model.parameters())
    make = OPTIMIZERS[recipe.optimizer]
    if make is adamw and dispatch.uses_triton(parameters[0]):
        return FlatAdamW(parameters, recipe)
    return make(parameters, recipe)


def can_be_captured(optimizer: Any) -> bool:
    """Whether a CUDA graph can hold its update: others keep their learning rate on the host, where a graph would not
    see it change.
    """
    return isinstance(getattr(optimizer, "optimizer", optimizer), FlatAdamW)


class FlatAdamW(torch.optim.AdamW):
    """The same on a GPU, with all parameters in one vector: an update is a few launches, and can be captured.

    Parameters and moments become views of flat vectors, so state dicts and checkpoints look as ever; rate and step
    count live on the device.
    """

    def __init__(self, parameters: list[nn.Parameter], recipe: TrainingRecipe) -> None:
        device = parameters[0].device
        rate = torch.tensor(recipe.learning_rate, device=device)
        super().__init__(parameters, lr=rate, weight_decay=recipe.weight_decay, fused=True, capturable=True)
        self.rates = Rates(recipe.clip_norm, recipe.weight_decay)
        self.flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.gradient = torch.zeros_like(self.flat)
        self.moments = Moments(torch.zeros_like(self.flat), torch.zeros_like(self.flat), torch.zeros((), device=device))
        sizes = [parameter.numel() for parameter in parameters]
        self.places = [piece for vector in self.gradient.split(sizes) for piece in vector.split(PIECE)]
        views = zip(*(vector.split(sizes) for vector in (self.flat, *self.moments[:2])), strict=True)
        for parameter, (values, first, second) in zip(parameters, views, strict=True):
            parameter.data = values.view_as(parameter)
            self.state[parameter] = {
                "step": self.moments.step,
                "exp_avg": first.view_as(parameter),
                "exp_avg_sq": second.view_as(parameter),
            }

    @torch.no_grad()
    def clipped_step(self) -> None:
        """Clip and update in one go; a parameter that no gradient reached counts as zero."""
        parameters = self.param_groups[0]["params"]
        gradients = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in parameters]
        # In pieces, each of which is a block of a few launches; a concatenation of 150 vectors takes 39 µs.
        pieces = [piece for gradient in gradients for piece in gradient.split(PIECE)]
        for start in range(0, len(pieces), COPIED):
            with beside():
                torch._foreach_copy_(self.places[start : start + COPIED], pieces[start : start + COPIED])
        together()
        from ckgconv.backends.cuda.adamw import triton as kernels

        kernels.clipped_adamw(self.flat, self.gradient, self.moments, self.param_groups[0]["lr"], self.rates)


def update(model: nn.Module, optimizer: Any, recipe: TrainingRecipe) -> None:
    """Clip the gradients of a backward pass and move the parameters."""
    inner = getattr(optimizer, "optimizer", optimizer)
    if isinstance(inner, FlatAdamW):
        inner.clipped_step()
    else:
        clip_gradients(model, recipe)
        optimizer.step()


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate of an epoch; in place where it lives on a GPU, since a captured step reads it there."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def learning_rate(epoch: int, recipe: TrainingRecipe) -> float:
    """The rate used during an epoch: linear warm-up, then a cosine whose minimum lies after the last epoch."""
    base, low = recipe.learning_rate, recipe.min_learning_rate
    if epoch < recipe.warmup_epochs:
        return START + epoch * (base - START) / recipe.warmup_epochs
    progress = (epoch - recipe.warmup_epochs) / max(recipe.epochs - recipe.warmup_epochs, 1)
    return low + 0.5 * (base - low) * (1 + math.cos(math.pi * progress))


def clip_gradients(model: nn.Module, recipe: TrainingRecipe) -> torch.Tensor:
    """Scales gradients to at most the recipe's total norm, by min(1, clip/(norm + 10⁻⁶)); returns the norm before."""
    return nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
