"""Predictions for molecules with what they are worth, by column and by row.

    NAME_predicted                 the value, or the probability of a label or class; the mean of several members
    NAME_deviation, NAME_median    standard deviation between the members, and their median, where there are several
    NAME_lower, NAME_upper         bounds of the interval, where one was fitted
    NAME_calibrated                the calibrated probability, where a calibration was fitted
    similarity, nearest, outside   the nearest training molecule, and whether it is too far, where these were kept
    reason                         why nothing was predicted
    embedding0, …                  what the head reads, where asked for

Where targets have no names, NAME is prediction, or prediction0, …, and is itself the column of the value.

Legend: M molecules, T outputs, D channels that the head reads.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNNAMED = re.compile(r"prediction\d*")
Values = NDArray[np.float64]
# By name; one cell per row. None: undefined for this row.
Cells = dict[str, list[Any]]


@dataclass(frozen=True)
class Nearness:
    """The nearest training molecule of each molecule."""

    similarity: Values  # [M] NaN where there is no molecule
    nearest: list[str]  # [M] SMILES, as in the training data; empty where there is no molecule
    outside: NDArray[np.bool_]  # [M] whether the similarity is below the threshold


@dataclass(frozen=True)
class PredictedMolecule:
    """One molecule; fields are None where they were not fitted or kept, or where nothing was predicted."""

    names: tuple[str, ...]  # of the outputs
    smiles: str
    values: tuple[float, ...] | None  # in the units of the data, or probabilities
    deviation: tuple[float, ...] | None  # between the members
    lower: tuple[float, ...] | None  # NaN: too few validation rows for this level
    upper: tuple[float, ...] | None
    calibrated: tuple[float, ...] | None  # probabilities
    similarity: float | None  # to the nearest training molecule
    nearest: str | None  # its SMILES
    outside: bool | None  # of the applicability domain
    reason: str  # why nothing was predicted; empty where something was

    @property
    def inside(self) -> bool | None:
        """Whether the molecule lies inside the applicability domain."""
        return None if self.outside is None else not self.outside


@dataclass(frozen=True)
class PredictedMolecules(Sequence[PredictedMolecule]):
    """Predictions for M molecules, in their order; rows of molecules that could not be predicted are NaN."""

    names: tuple[str, ...]  # [T] of the outputs
    smiles: Sequence[str]  # [M]
    values: Values  # [M, T]
    reasons: list[str]  # [M]
    deviation: Values | None = None  # [M, T]
    median: Values | None = None  # [M, T]
    lower: Values | None = None  # [M, T]
    upper: Values | None = None  # [M, T]
    calibrated: Values | None = None  # [M, T]
    nearness: Nearness | None = None
    classes: dict[str, list[str]] = field(default_factory=dict)  # by target of classes, the most probable one [M]
    embeddings: Values | None = None  # [M, D]
    scored: Sequence[bool] | None = None  # [T] of several kinds: whether an output is a value, which has an interval

    def __len__(self) -> int:
        return len(self.reasons)

    def __iter__(self) -> Iterator[PredictedMolecule]:
        return (self.row(place) for place in range(len(self)))

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self.row(each) for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"There is no row {place}: there are {len(self)}.")
        return self.row(place % len(self))

    def row(self, place: int) -> PredictedMolecule:
        """One molecule, by its place from 0."""
        reason = self.reasons[place]

        def of(values: Values | None) -> tuple[float, ...] | None:
            return None if values is None or reason else tuple(values[place].tolist())

        near = None if reason else self.nearness
        return PredictedMolecule(
            names=self.names,
            smiles=self.smiles[place],
            values=of(self.values),
            deviation=of(self.deviation),
            lower=of(self.lower),
            upper=of(self.upper),
            calibrated=of(self.calibrated),
            similarity=None if near is None else float(near.similarity[place]),
            nearest=None if near is None else near.nearest[place],
            outside=None if near is None else bool(near.outside[place]),
            reason=reason,
        )

    def columns(self) -> Cells:
        """By the names above, one cell per row; None where a number is undefined."""
        found: Cells = {}
        groups = {
            "predicted": self.values,
            "deviation": self.deviation,
            "median": self.median,
            "lower": self.lower,
            "upper": self.upper,
            "calibrated": self.calibrated,
        }
        for ending, values in groups.items():
            if values is not None:
                for place, (name, column) in enumerate(zip(self.names, values.T, strict=True)):
                    if self._has(place, ending):
                        found[column_name(name, ending)] = _defined(column)
        for target, names in self.classes.items():
            found[column_name(target, "predicted")] = [each or None for each in names]
        if self.nearness is not None:
            found["similarity"] = _defined(self.nearness.similarity)
            found["nearest"] = [each or None for each in self.nearness.nearest]
            unknown = np.isnan(self.nearness.similarity)
            outside = zip(self.nearness.outside.tolist(), unknown.tolist(), strict=True)
            found["outside"] = [None if missing else far for far, missing in outside]
        found["reason"] = list(self.reasons)
        if self.embeddings is not None:
            found |= {f"embedding{place}": _defined(column) for place, column in enumerate(self.embeddings.T)}
        return found

    def _has(self, place: int, ending: str) -> bool:
        """Whether an output has a column: of several kinds, values have bounds, and the others calibrations."""
        if self.scored is None or ending not in ("lower", "upper", "calibrated"):
            return True
        return self.scored[place] != (ending == "calibrated")


def column_name(name: str, ending: str) -> str:
    """The column of an output."""
    return name if ending == "predicted" and UNNAMED.fullmatch(name) else f"{name}_{ending}"


def _defined(column: Values) -> list[float | None]:
    return [None if value != value else value for value in column.tolist()]
