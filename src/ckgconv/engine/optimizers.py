"""Optimisers by name, and the one of a recipe; all parameters are updated alike.

adamw   θ ← θ - η (m̂/(√v̂ + ε) + λθ)               decoupled weight decay λ
adam    θ ← θ - η m̂/(√v̂ + ε)                      λθ is part of the gradient, as a penalty λ|θ|²/2 would be
sgd     v ← μv + g + λθ,  θ ← θ - ηv               momentum μ = training.momentum; λ is part of the gradient

Whatever the optimiser, the learning rate η of each epoch (`learning_rate`) and the clipping (`step`) are the recipe's.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import Parameter

from ckgconv.backends.cuda.adamw.naive import Rates
from ckgconv.ops import dispatch
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


def optimizer_of(model: nn.Module, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """The recipe's optimiser of all parameters that are trained, biases and norms included."""
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
