"""Weights of targets in the loss; metrics never see them.

    w_ij = w_i / w̄ · b_j(y_ij)

    w_i      the weight of graph i, divided by w̄, the mean over training graphs, so that the learning rate keeps its
             meaning
    b_j(c)   K_j / (C_j K_jc) where classes are balanced (`training.class_balance`): of K_j known training targets of
             column j, K_jc are of class c, one of C_j that occur; the mean of b over them is 1

Legend: M rows, T outputs, C classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ckgconv.tasks.mixed import MixedLoss
from ckgconv.tasks.task import Loss


@dataclass(frozen=True)
class TargetWeights:
    """How a batch of targets is weighted."""

    mean: float = 1.0
    balance: Tensor | None = None  # [C] of classes, [2, T] of labels 0 and 1; None: classes are not balanced

    def of(self, target: Tensor, weight: Tensor | None) -> Tensor | None:
        """[M] or [M, T] for targets as the data has them and weights [M] of their graphs; None: all are 1."""
        rows = None if weight is None else weight / self.mean
        if self.balance is None:
            return rows
        if self.balance.dim() == 1:
            own = self.balance[target.long().clamp(min=0)]
            return own if rows is None else own * rows
        target = target.reshape(len(target), -1)
        own = torch.where(target > 0.5, self.balance[1], self.balance[0])
        return own if rows is None else own * rows.unsqueeze(-1)

    def to(self, device: torch.device, dtype: torch.dtype) -> "TargetWeights":
        balance = None if self.balance is None else self.balance.to(device, dtype)
        return TargetWeights(self.mean, balance)


UNWEIGHTED = TargetWeights()


def fitted_weights(
    loss: Loss, class_balance: bool, target: Tensor, weight: Tensor | None, outputs: int
) -> TargetWeights:
    """The weights that follow from training targets [M, ·] and the weights [M] of their graphs."""
    columns = loss.columns if isinstance(loss, MixedLoss) else ()
    mean = 1.0 if weight is None else float(weight.double().mean())
    if not class_balance:
        return TargetWeights(mean)
    if loss.targets == "classes":
        counts = torch.bincount(target[target >= 0].long(), minlength=max(outputs, 2)).double()
        balance = counts.sum() / (counts > 0).sum().clamp(min=1) / counts
        return TargetWeights(mean, balance.where(counts > 0, 0.0).float())
    labels = target.reshape(len(target), -1).double()
    counts = torch.stack([(labels == 0).sum(0), (labels == 1).sum(0)]).double()
    balance = counts.sum(0) / 2 / counts
    both = (counts > 0).all(0)
    balance = balance.where(both, 1.0)
    for column in columns:
        if column.targets == "values":
            balance[:, column.places] = 1.0
        if column.targets == "classes":  # of every known row one output is 1
            ones = counts[1, column.places]
            own = ones.sum() / (ones > 0).sum().clamp(min=1) / ones
            balance[1, column.places] = own.where(ones > 0, 1.0)
    return TargetWeights(mean, balance.float())
