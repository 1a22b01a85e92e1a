"""Prediction + target → loss, as the published runs compute it.

    l1                       mean |ŷ - y|
    cross_entropy            mean over graphs
    weighted_cross_entropy   Σ w_y CE / Σ w_y,  w_c = (V - V_c)/V of the batch, 0 for an absent class
    weighted_binary          1/V Σ w_y BCE,     the same weights, divided by V
    binary                   mean over graphs and labels

Missing targets (NaN) do not count. Where several processes share a batch, `total` sums over them; each then returns
its part of the loss of the whole batch, and the parts add up to it.

Legend: M rows (graphs, or V nodes), T outputs.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

Total = Callable[[Tensor], Tensor]
Loss = Callable[[Tensor, Tensor, Total], Tensor]


def alone(value: Tensor) -> Tensor:
    """The total over one process."""
    return value


def l1(prediction: Tensor, target: Tensor, total: Total = alone) -> Tensor:
    """[M, T] and [M, T] or [M] → scalar."""
    target = target.reshape(prediction.shape)
    known = target.isfinite()
    difference = (prediction - target.nan_to_num()).abs().where(known, 0.0)
    return difference.sum() / _at_least_one(total(known.sum()))


def cross_entropy(prediction: Tensor, target: Tensor, total: Total = alone) -> Tensor:
    """[M, T] and classes [M] → scalar."""
    return F.cross_entropy(prediction, target, reduction="sum") / total(_count(target))


def weighted_cross_entropy(prediction: Tensor, target: Tensor, total: Total = alone) -> Tensor:
    """[M, T] and classes [M] → scalar."""
    weights = class_weights(target, prediction.shape[1], prediction.dtype, total)
    # One class alone has weight zero: the loss is zero, not 0/0.
    scale = total(weights[target].sum()).clamp(min=torch.finfo(prediction.dtype).tiny)
    return F.cross_entropy(prediction, target, weight=weights, reduction="sum") / scale


def weighted_binary(prediction: Tensor, target: Tensor, total: Total = alone) -> Tensor:
    """One logit [M, 1] and classes [M] in {0, 1} → scalar."""
    weights = class_weights(target, 2, prediction.dtype, total)[target]
    logits = prediction.squeeze(-1)
    terms = F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), weight=weights, reduction="sum")
    return terms / total(_count(target))


def binary(prediction: Tensor, target: Tensor, total: Total = alone) -> Tensor:
    """Logits [M, T] and labels [M, T] → scalar."""
    target = target.reshape(prediction.shape).to(prediction.dtype)
    known = target.isfinite()
    terms = F.binary_cross_entropy_with_logits(prediction, target.nan_to_num(), reduction="none").where(known, 0.0)
    return terms.sum() / _at_least_one(total(known.sum()))


def class_weights(target: Tensor, classes: int, dtype: torch.dtype, total: Total = alone) -> Tensor:
    """[T] (V - V_c)/V; an absent class has weight 0."""
    count = total(torch.bincount(target, minlength=classes)).to(dtype)
    rows = count.sum()
    return torch.where(count > 0, (rows - count) / rows, torch.zeros_like(count))


def _count(target: Tensor) -> Tensor:
    return torch.tensor(target.shape[0], device=target.device)


def _at_least_one(count: Tensor) -> Tensor:
    return count.clamp(min=1)


LOSSES: dict[str, Loss] = {
    "l1": l1,
    "cross_entropy": cross_entropy,
    "weighted_cross_entropy": weighted_cross_entropy,
    "weighted_binary": weighted_binary,
    "binary": binary,
}
