"""Losses, as the published runs compute them; and Huber's.

    l1                       mean |ŷ - y|
    cross_entropy            mean over graphs
    weighted_cross_entropy   Σ w_y CE / Σ w_y,  w_c = (V - V_c)/V of the batch, 0 for an absent class
    weighted_binary          1/V Σ w_y BCE,     with the same weights
    binary                   mean over graphs and labels
    huber                    quadratic in small errors, linear in large ones (`huber`)
    mse                      mean (ŷ - y)²
    focal, focal_cross_entropy   cross entropies in which rows predicted well count little (`focal`)
    mixed                    of columns of different kinds (`mixed`)

A target of NaN, or a class or label of -1, does not count: value and gradients are as without its row, and both are
zero where no row counts. Shapes never depend on how many rows count and nothing is read back to the host, so that a
captured step may call these. Where several processes share a batch, `total` sums over them; each then returns its share
of the loss of the whole batch, and the shares add up to it.

Legend: M rows (graphs, or V nodes), T outputs.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.checks import InputError
from ckgconv.ops.mean_absolute_error import mean_absolute_error
from ckgconv.ops.mean_absolute_error.naive import known_difference
from ckgconv.registry import Registry
from ckgconv.tasks.focal import FOCAL, FOCAL_CROSS_ENTROPY
from ckgconv.tasks.huber import HUBER
from ckgconv.tasks.mixed import MixedLoss
from ckgconv.tasks.mse import MSE_LOSS
from ckgconv.tasks.task import IGNORED, BoundLoss, Loss, Total, one_process, weighted


def l1(prediction: Tensor, target: Tensor, total: Total = one_process, weight: Tensor | None = None) -> Tensor:
    """[M, T] and [M, T] or [M] → scalar."""
    target = target.reshape(prediction.shape).to(prediction.dtype)
    if weight is not None:
        known = target.isfinite()
        terms = (prediction.where(known, 0.0) - target.where(known, 0.0)).abs()
        return weighted(terms, weight).sum() / _at_least_one(total(known.sum()))
    if total is one_process:
        return mean_absolute_error(prediction, target)
    summed, count = known_difference(prediction, target)
    return summed / _at_least_one(total(count))


def cross_entropy(
    prediction: Tensor, target: Tensor, total: Total = one_process, weight: Tensor | None = None
) -> Tensor:
    """[M, T] and classes [M] → scalar."""
    counts = target >= 0
    return _summed_cross_entropy(prediction, target, counts, rows=weight) / _at_least_one(total(counts.sum()))


def weighted_cross_entropy(
    prediction: Tensor, target: Tensor, total: Total = one_process, weight: Tensor | None = None
) -> Tensor:
    """[M, T] and classes [M] → scalar."""
    counts = target >= 0
    weights = class_weights(target, prediction.shape[1], prediction.dtype, total)
    # The only class of a batch has weight zero: the loss is then zero, not 0/0.
    scale = total(_row_weights(weights, target, counts).sum()).clamp(min=torch.finfo(prediction.dtype).tiny)
    return _summed_cross_entropy(prediction, target, counts, weights, weight) / scale


def weighted_binary(
    prediction: Tensor, target: Tensor, total: Total = one_process, weight: Tensor | None = None
) -> Tensor:
    """One logit [M, 1] and classes [M] in {0, 1} → scalar."""
    counts = target >= 0
    weights = weighted(_row_weights(class_weights(target, 2, prediction.dtype, total), target, counts), weight)
    logits = prediction.squeeze(-1).where(counts, 0.0)
    terms = F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), weight=weights, reduction="sum")
    return terms / _at_least_one(total(counts.sum()))


def binary(prediction: Tensor, target: Tensor, total: Total = one_process, weight: Tensor | None = None) -> Tensor:
    """Logits [M, T] and labels [M, T] → scalar."""
    target = target.reshape(prediction.shape).to(prediction.dtype)
    known = target >= 0  # false for NaN
    logits, labels = prediction.where(known, 0.0), target.where(known, 0.0)
    terms = F.binary_cross_entropy_with_logits(logits, labels, reduction="none").where(known, 0.0)
    return weighted(terms, weight).sum() / _at_least_one(total(known.sum()))


def mask_targets(target: Tensor, counts: Tensor, loss: str) -> Tensor:
    """Targets [M] or [M, T] of which only the rows with `counts` [M] count: the others become NaN, or class -1.

    Integers that a loss takes as values become floats, since -1 may be one of them.
    """
    if LOSSES[loss].targets == "values" and not target.is_floating_point():
        target = target.double()
    ignored = math.nan if target.is_floating_point() else IGNORED
    return target.where(counts.view(-1, *[1] * (target.dim() - 1)), ignored)


def class_weights(target: Tensor, classes: int, dtype: torch.dtype, total: Total = one_process) -> Tensor:
    """[T] (V - V_c)/V; an absent class has weight 0."""
    # Not bincount, whose output size a GPU would have to send back to the host.
    numbers = torch.arange(classes, device=target.device)
    count = total((target.unsqueeze(-1) == numbers).sum(0)).to(dtype)
    rows = _at_least_one(count.sum())
    return ((rows - count) / rows).where(count > 0, 0.0)


def _summed_cross_entropy(
    prediction: Tensor, target: Tensor, counts: Tensor, weights: Tensor | None = None, rows: Tensor | None = None
) -> Tensor:
    """Σ CE, of classes with `weights` [T] and rows with weights `rows` [M]."""
    # The prediction of a row that does not count, even NaN, must not reach the gradients.
    logits = prediction.where(counts.unsqueeze(-1), 0.0)
    if rows is not None:
        terms = F.cross_entropy(logits, target, weight=weights, ignore_index=IGNORED, reduction="none")
        return weighted(terms, rows).sum()
    return F.cross_entropy(logits, target, weight=weights, ignore_index=IGNORED, reduction="sum")


def _row_weights(weights: Tensor, target: Tensor, counts: Tensor) -> Tensor:
    """[M] the weight of each row's class, 0 where it does not count."""
    return weights[target.clamp(min=0)].where(counts, 0.0)


def _at_least_one(count: Tensor) -> Tensor:
    return count.clamp(min=1)


def _not_fitted(prediction: Tensor, target: Tensor, total: Total = one_process, weight: Tensor | None = None) -> Tensor:
    raise InputError("The loss 'mixed' depends on the columns of a recipe: use LOSSES['mixed'].of(recipe.training).")


OF_ONE_KIND = {
    "l1": Loss(l1, "values", weighted=True),
    "cross_entropy": Loss(cross_entropy, "classes", weighted=True),
    "weighted_cross_entropy": Loss(weighted_cross_entropy, "classes", weighted=True),
    "weighted_binary": Loss(weighted_binary, "classes", weighted=True),
    "binary": Loss(binary, "labels", weighted=True),
    "huber": HUBER,
    "mse": MSE_LOSS,
    "focal": FOCAL,
    "focal_cross_entropy": FOCAL_CROSS_ENTROPY,
}
OURS = {**OF_ONE_KIND, "mixed": MixedLoss(_not_fitted, "mixed", weighted=True, losses=OF_ONE_KIND)}
LOSSES: Registry[Loss] = Registry("loss", "ckgconv.losses", OURS, Loss)

__all__ = ["IGNORED", "LOSSES", "BoundLoss", "Loss", "Total", "mask_targets", "one_process"]
