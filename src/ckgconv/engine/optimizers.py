"""Optimisers by name; learning rate, schedule and clipping are those of the recipe, whatever the optimiser.

adamw   θ ← θ - η (m̂/(√v̂ + ε) + λθ)               decoupled weight decay λ
sgd     v ← μv + g + λθ,  θ ← θ - ηv               momentum μ = training.momentum; λ is part of the gradient
"""

from collections.abc import Callable, Iterable

import torch
from torch.nn import Parameter

from ckgconv.recipe import TrainingRecipe
from ckgconv.registry import Registry

# Parameters and recipe → the optimiser. The state of each parameter must consist of tensors: checkpoints store nothing
# else.
MakeOptimizer = Callable[[Iterable[Parameter], TrainingRecipe], torch.optim.Optimizer]


def adamw(parameters: Iterable[Parameter], recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """AdamW, which the published runs use."""
    # fused: one sweep over each parameter and its moments; by default ten.
    return torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)


def sgd(parameters: Iterable[Parameter], recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum."""
    return torch.optim.SGD(
        parameters, lr=recipe.learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )


OURS: dict[str, MakeOptimizer] = {
    "adamw": adamw,
    "sgd": sgd,
}
OPTIMIZERS: Registry[MakeOptimizer] = Registry("optimiser", "ckgconv.optimizers", OURS)
