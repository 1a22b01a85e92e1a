"""Prediction + target → loss, as the published runs compute it.

    l1                       mean |ŷ - y|
    cross_entropy            mean over graphs
    weighted_cross_entropy   Σ w_y CE / Σ w_y,  w_c = (V - V_c)/V of the batch, 0 for an absent class
    weighted_binary          1/V Σ w_y BCE,     the same weights, divided by V
    binary                   mean over graphs and labels

Legend: M rows (graphs, or V nodes), T outputs.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F


def l1(prediction: Tensor, target: Tensor) -> Tensor:
    """[M, T] and [M, T] or [M] → scalar."""
    return F.l1_loss(prediction, target.reshape(prediction.shape))


def cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    """[M, T] and classes [M] → scalar."""
    return F.cross_entropy(prediction, target)


def weighted_cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    """[M, T] and classes [M] → scalar."""
    return F.cross_entropy(prediction, target, weight=class_weights(target, prediction))


def weighted_binary(prediction: Tensor, target: Tensor) -> Tensor:
    """One logit [M, 1] and classes [M] in {0, 1} → scalar."""
    weights = class_weights(target, prediction, classes=2)[target]
    logits = prediction.squeeze(-1)
    return F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), weight=weights)


def binary(prediction: Tensor, target: Tensor) -> Tensor:
    """Logits [M, T] and labels [M, T] → scalar."""
    return F.binary_cross_entropy_with_logits(prediction, target.to(prediction.dtype))


def class_weights(target: Tensor, prediction: Tensor, classes: int | None = None) -> Tensor:
    """[T] (V - V_c)/V; an absent class has weight 0."""
    count = torch.bincount(target, minlength=classes or prediction.shape[1]).to(prediction.dtype)
    return torch.where(count > 0, (target.shape[0] - count) / target.shape[0], torch.zeros_like(count))


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "l1": l1,
    "cross_entropy": cross_entropy,
    "weighted_cross_entropy": weighted_cross_entropy,
    "weighted_binary": weighted_binary,
    "binary": binary,
}
