"""Optimiser and learning rate of a run.

All parameters are updated alike, the norm of the gradient is clipped, and the learning rate is set once per epoch e:

    e < W:  10⁻⁷ + e (base - 10⁻⁷)/W          else:  min + (base - min) s(t),  t = (e - W)/(E - W)

    cosine           s(t) = ½ (1 + cos(π t))      the published schedule
    linear           s(t) = 1 - t
    constant         s(t) = 1
    constant_linear  s(t) = min(1, (1 - t)/c)     constant, but linear in the last share c = `training.cooldown`
"""

import math
from typing import Any

import torch
from torch import nn

from ckgconv.backends.cuda.adamw.naive import Rates
from ckgconv.engine.optimizers import OPTIMIZERS, adamw
from ckgconv.ops import dispatch
from ckgconv.recipe import TrainingRecipe

# The rate of epoch 0, where the warm-up begins.
WARMUP_START = 1e-7


def optimizer(model: nn.Module, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """The recipe's optimiser on every parameter that is trained, biases and norms included."""
    parameters = [each for each in model.parameters() if each.requires_grad]
    make = OPTIMIZERS[recipe.optimizer]
    if make is adamw and dispatch.uses_triton(parameters[0]):
        from ckgconv.backends.cuda.adamw.flat import FlatAdamW

        rates = Rates(recipe.clip_norm, recipe.weight_decay, ema_decay=recipe.ema_decay)
        return FlatAdamW(parameters, rates, recipe.learning_rate)
    return make(parameters, recipe)


def can_be_captured(optimizer: Any) -> bool:
    """Whether a CUDA graph can contain the update.

    Other optimisers keep their learning rate on the host, where a captured step would not see it change.
    """
    return hasattr(getattr(optimizer, "optimizer", optimizer), "clipped_step")


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of an epoch; in place where it is a tensor on a GPU, since a captured step reads that tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def learning_rate(epoch: int, recipe: TrainingRecipe) -> float:
    """The rate used during an epoch: linear warm-up, then the recipe's decay, which ends after the last epoch."""
    base, low = recipe.learning_rate, recipe.min_learning_rate
    if epoch < recipe.warmup_epochs:
        return WARMUP_START + epoch * (base - WARMUP_START) / recipe.warmup_epochs
    progress = (epoch - recipe.warmup_epochs) / max(recipe.epochs - recipe.warmup_epochs, 1)
    if recipe.schedule == "cosine":
        return low + 0.5 * (base - low) * (1 + math.cos(math.pi * progress))
    return low + (base - low) * _share(progress, recipe)


def _share(progress: float, recipe: TrainingRecipe) -> float:
    """s(t) of the schedules other than the cosine."""
    if recipe.schedule == "linear":
        return 1 - progress
    if recipe.schedule == "constant" or 1 - progress >= recipe.cooldown:
        return 1.0
    return (1 - progress) / recipe.cooldown
