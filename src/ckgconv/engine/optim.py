"""Optimiser and schedule of the published runs.

AdamW on all parameters, gradient norm clipped, and a learning rate set once per epoch e:

    e < W:  10⁻⁷ + e (base - 10⁻⁷)/W          else:  min + ½ (base - min)(1 + cos(π (e - W)/(E - W)))
"""

import math

import torch
from torch import nn

from ckgconv.recipe import TrainingRecipe

# The rate of epoch 0, from which the warm-up rises.
START = 1e-7


def optimizer(model: nn.Module, recipe: TrainingRecipe) -> torch.optim.AdamW:
    """AdamW with the recipe's rate and decay on every parameter, biases and norms included.

    On a GPU the rate and the count of steps live there too, so that a step can be captured.
    """
    parameters = list(model.parameters())
    if not parameters[0].is_cuda:
        return torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    rate = torch.tensor(recipe.learning_rate, device=parameters[0].device)
    return torch.optim.AdamW(parameters, lr=rate, weight_decay=recipe.weight_decay, fused=True, capturable=True)


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
