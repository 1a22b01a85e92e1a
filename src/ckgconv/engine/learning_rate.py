"""The learning rate of each epoch e, by the schedule of the recipe.

    e < W:  10⁻⁷ + e (base - 10⁻⁷)/W          else:  min + (base - min) s(t),  t = (e - W)/(E - W)

    cosine           s(t) = ½ (1 + cos(π t))      the published schedule
    linear           s(t) = 1 - t
    constant         s(t) = 1
    constant_linear  s(t) = min(1, (1 - t)/c)     constant, but linear in the last share c = `training.cooldown`

Legend: E epochs, W of them with a growing rate (warm-up).
"""

import math

import torch

from ckgconv.recipe import TrainingRecipe

# The rate of epoch 0, where the warm-up begins.
WARMUP_START = 1e-7


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
