"""Consistency: predictions of one input under several draws of dropout should agree, with a label or without one.

    L  = 1/S Σ_s loss(ŷˢ, y) + λ/(S M) Σ_s Σ_i ‖pˢ_i - q_i‖²,    pˢ = softmax(ŷˢ)
    q  = p̄^(1/τ) / Σ_c p̄_c^(1/τ),    p̄ = 1/S Σ_s pˢ            a constant, sharper than the mean

after Feng et al., Graph Random Neural Networks (NeurIPS 2020). S is `training.draws`, λ `training.consistency` and τ
`training.sharpening` of a recipe.

Legend: S draws, M rows (graphs or nodes), T classes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ckgconv.tasks.task import Total, one_process


def consistency(draws: Sequence[Tensor], temperature: float, total: Total = one_process) -> Tensor:
    """S logits [M, T] → 1/(S M) Σ_s Σ_i ‖pˢ_i - q_i‖², this process's share; gradients flow through pˢ alone."""
    probabilities = torch.stack([logits.softmax(-1) for logits in draws])
    target = sharpened(probabilities.detach().mean(0), temperature)
    rows = total(probabilities.new_tensor(float(target.shape[0]))).clamp(min=1)
    return (probabilities - target).square().sum() / (len(draws) * rows)


def sharpened(probabilities: Tensor, temperature: float) -> Tensor:
    """[M, T] p^(1/τ), normalised: τ < 1 moves each row towards its most probable class."""
    # Of logarithms, since p^(1/τ) of all classes underflows at a small τ.
    return (probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log() / temperature).softmax(-1)
