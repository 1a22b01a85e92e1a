"""Targets of different kinds at once: each column has a loss of its own, and training minimises their mean.

    ℓ = 1/J Σ_j ℓ_j / s_j      of J columns

    values     ℓ_j of standardised targets, s_j = 1
    labels     s_j = log 2, the cross entropy of knowing nothing
    classes    s_j = log C, the same of C classes

So a column that nothing is known of adds about 1, whatever its kind. Outputs and targets [M, T] have one column for a
value or a label, and C for classes: logits, and 1 for the class of the row (`data.table_targets`).

A metric of one kind judges the columns of that kind. `mixed_score` is the mean over all columns of R² of values, AUROC
of labels and mean recall of classes; a column that does not define its own is left out.

Legend: M rows, T outputs, J columns, C classes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
import torchmetrics
from torch import Tensor, nn

from ckgconv.checks import InputError, require
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.task import IGNORED, BoundLoss, Loss, Metric, Targets, Total


@dataclass(frozen=True)
class Column:
    """A target among others."""

    targets: Targets
    start: int  # its first output
    outputs: int

    @property
    def places(self) -> slice:
        return slice(self.start, self.start + self.outputs)


def columns_of(recipe: TrainingRecipe, losses: Mapping[str, Loss]) -> tuple[Column, ...]:
    """The columns that a recipe describes."""
    names, sizes = recipe.mixed, recipe.mixed_outputs
    require(
        len(names) == len(sizes) > 0,
        f"training.mixed has {len(names)} losses and training.mixed_outputs {len(sizes)} numbers: give one for each "
        f"column.",
    )
    found, start = [], 0
    for name, size in zip(names, sizes, strict=True):
        require(name in losses, f"training.mixed names the loss {name!r}: choose among {', '.join(losses)}.")
        kind = losses[name].targets
        require(
            (size > 1) == (kind == "classes"),
            f"training.mixed_outputs has {size} outputs for a column of {kind}: give one, or several for classes.",
        )
        found.append(Column(kind, start, size))
        start += size
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class MixedLoss(Loss):
    """A loss of several columns; without a recipe it has none."""

    losses: Mapping[str, Loss]
    columns: tuple[Column, ...] = ()

    def fitted(self, recipe: TrainingRecipe) -> "MixedLoss":
        """The loss of a recipe's columns."""
        return replace(self, columns=columns_of(recipe, self.losses))

    def of(self, recipe: TrainingRecipe) -> BoundLoss:
        columns = self.columns or columns_of(recipe, self.losses)
        bound = [self.losses[name].of(recipe) for name in recipe.mixed]

        def mean(prediction: Tensor, target: Tensor, total: Total, weight: Tensor | None = None) -> Tensor:
            terms = [
                _of_column(column, loss, prediction, target, total, weight)
                for column, loss in zip(columns, bound, strict=True)
            ]
            return torch.stack(terms).mean()

        return mean

    def outcome(self, prediction: Tensor) -> tuple[Tensor, Tensor | None]:
        parts = [_shown(column.targets, prediction[:, column.places]) for column in self.columns]
        return torch.cat(parts, dim=1), None

    def prediction_of(self, outcome: Tensor) -> Tensor:
        parts = []
        for column in self.columns:
            alone = Loss(self.function, column.targets)
            parts.append(alone.prediction_of(outcome[:, column.places]))
        return torch.cat(parts, dim=1)


def _of_column(
    column: Column, loss: BoundLoss, prediction: Tensor, target: Tensor, total: Total, weight: Tensor | None
) -> Tensor:
    own = target.reshape(prediction.shape)[:, column.places]
    weight = weight if weight is None or weight.dim() == 1 else weight[:, column.places]
    if column.targets != "classes":
        scale = math.log(2) if column.targets == "labels" else 1.0
        return loss(prediction[:, column.places], own, total, weight) / scale
    if weight is not None and weight.dim() == 2:  # that of the row's class
        weight = (weight * own.nan_to_num(0)).sum(1)
    return loss(prediction[:, column.places], class_of(own), total, weight) / math.log(column.outputs)


def class_of(target: Tensor) -> Tensor:
    """[M, C] with 1 for the class of each row → [M]; -1 where it is unknown."""
    return target.nan_to_num(0).argmax(1).where(target.isfinite().all(1), IGNORED)


def _shown(targets: Targets, prediction: Tensor) -> Tensor:
    if targets == "values":
        return prediction
    return prediction.sigmoid() if targets == "labels" else prediction.softmax(-1)


class MeanOverColumns(torchmetrics.Metric):
    """The mean of metrics of some columns, without those that are undefined."""

    full_state_update = False

    def __init__(self, parts: list[tuple[Metric, list[Column]]]) -> None:
        super().__init__()
        self.parts = parts
        self.inner = nn.ModuleList([metric.make(sum(each.outputs for each in columns)) for metric, columns in parts])

    def update(self, prediction: Tensor, target: Tensor) -> None:
        for collector, (metric, columns) in zip(self.inner, self.parts, strict=True):
            places = torch.cat([torch.arange(each.start, each.start + each.outputs) for each in columns])
            own = target.reshape(prediction.shape)[:, places.to(target.device)]
            own = class_of(own) if metric.targets == "classes" else own
            metric.update(collector, prediction[:, places.to(prediction.device)], own)  # type: ignore[arg-type]

    def compute(self) -> Tensor:
        found = []
        for collector in self.inner:
            assert isinstance(collector, torchmetrics.Metric)
            collector.sync_on_compute = self.sync_on_compute
            collector.distributed_available_fn = self.distributed_available_fn
            try:
                found.append(torch.as_tensor(collector.compute()).double().cpu())
            except (IndexError, ValueError):
                found.append(torch.full((), torch.nan).double())
        return torch.stack(found).nanmean()

    def reset(self) -> None:
        super().reset()
        for collector in getattr(self, "inner", []):
            collector.reset()

    def sync(self, *args: object, **options: object) -> None:
        """Nothing of its own: each part gathers its rows itself."""

    def unsync(self, *args: object, **options: object) -> None:
        """As `sync`."""


def metric_of_columns(
    name: str, metric: Metric, columns: tuple[Column, ...], score: Mapping[Targets, Metric]
) -> Metric:
    """A metric of the columns of its kind; of `mixed_score`, that of every column by its kind."""
    if metric.targets == "mixed":
        parts = [(score[column.targets], [column]) for column in columns]
    else:
        own = [column for column in columns if column.targets == metric.targets]
        require(
            bool(own), f"The metric {name!r} judges {metric.targets}, but no target is of that kind: choose another."
        )
        parts = [(metric, [column]) for column in own] if metric.targets == "classes" else [(metric, own)]
    return Metric(lambda outputs: MeanOverColumns(parts), "mixed", metric.higher_is_better)


def _without_columns(outputs: int) -> torchmetrics.Metric:
    raise InputError("The metric 'mixed_score' judges targets of several kinds: use it with the loss 'mixed'.")


MIXED_SCORE = Metric(_without_columns, "mixed", higher_is_better=True)
