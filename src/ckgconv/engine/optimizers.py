"""Optimisers by name; learning rate, schedule and clipping are those of the recipe, whatever the optimiser.

adamw   θ ← θ - η (m̂/(√v̂ + ε) + λθ)               decoupled weight decay λ
adam    θ ← θ - η m̂/(√v̂ + ε)                      λθ is part of the gradient, as a penalty λ|θ|²/2 would be
sgd     v ← μv + g + λθ,  θ ← θ - ηv               momentum μ = training.momentum; λ is part of the gradient
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.nn import Parameter

from ckgconv.recipe import TrainingRecipe
from ckgconv.registry import Registry

# Parameters, or torch's groups of them, and recipe → the optimiser. The state of each parameter must be tensors, since
# checkpoints store nothing else.
Parameters = Iterable[Parameter] | Iterable[dict[str, Any]]
MakeOptimizer = Callable[[Parameters, TrainingRecipe], torch.optim.Optimizer]


def adamw(parameters: Parameters, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """AdamW, which the published runs use."""
    # fused: one sweep over each parameter and its moments; by default ten.
    return torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)


def adam(parameters: Parameters, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """Adam with an L2 penalty, which published networks for nodes use."""
    return torch.optim.Adam(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)


def sgd(parameters: Parameters, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum."""
    return torch.optim.SGD(
        parameters, lr=recipe.learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )


OURS: dict[str, MakeOptimizer] = {
    "adam": adam,
    "adamw": adamw,
    "sgd": sgd,
}
OPTIMIZERS: Registry[MakeOptimizer] = Registry("optimiser", "ckgconv.optimizers", OURS)
