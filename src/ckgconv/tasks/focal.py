"""Focal losses (Lin et al. 2017): cross entropy in which rows that are predicted well count little.

    focal                  (1 - p_y)^γ BCE, the mean over known labels
    focal_cross_entropy    (1 - p_y)^γ CE,  the mean over known classes

p_y is the probability of the true label or class; γ is `training.focal_gamma`, and 0 gives plain cross entropy.

Legend: M rows (graphs or nodes), T outputs.
"""

from torch import Tensor
from torch.nn import functional as F

from ckgconv.tasks.task import IGNORED, Loss, Total, one_process, weighted


def focal(
    prediction: Tensor,
    target: Tensor,
    total: Total = one_process,
    weight: Tensor | None = None,
    focal_gamma: float = 2.0,
) -> Tensor:
    """Logits [M, T] and labels [M, T] → scalar."""
    target = target.reshape(prediction.shape).to(prediction.dtype)
    known = target >= 0  # false for NaN
    logits, labels = prediction.where(known, 0.0), target.where(known, 0.0)
    terms = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    terms = _focused(terms, focal_gamma).where(known, 0.0)
    return weighted(terms, weight).sum() / total(known.sum()).clamp(min=1)


def focal_cross_entropy(
    prediction: Tensor,
    target: Tensor,
    total: Total = one_process,
    weight: Tensor | None = None,
    focal_gamma: float = 2.0,
) -> Tensor:
    """[M, T] and classes [M] → scalar."""
    counts = target >= 0
    logits = prediction.where(counts.unsqueeze(-1), 0.0)
    terms = F.cross_entropy(logits, target, ignore_index=IGNORED, reduction="none")
    terms = _focused(terms, focal_gamma).where(counts, 0.0)
    return weighted(terms, weight).sum() / total(counts.sum()).clamp(min=1)


def _focused(terms: Tensor, gamma: float) -> Tensor:
    """(1 - e^-t)^γ t for cross entropies t; the gradient of 0^γ is infinite where γ < 1."""
    return (-(-terms).expm1()).clamp(min=1e-6) ** gamma * terms


FOCAL = Loss(focal, targets="labels", options=("focal_gamma",), weighted=True)
FOCAL_CROSS_ENTROPY = Loss(focal_cross_entropy, targets="classes", options=("focal_gamma",), weighted=True)
