"""Bounds in the annotation of a recipe's field: `Annotated[int, AtLeast(1)]`."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class AtLeast:
    """value ≥ bound."""

    bound: float

    def admits(self, value: float) -> bool:
        return value >= self.bound

    def __str__(self) -> str:
        return f"at least {self.bound:g}"


@dataclass(frozen=True)
class MoreThan:
    """value > bound."""

    bound: float

    def admits(self, value: float) -> bool:
        return value > self.bound

    def __str__(self) -> str:
        return f"more than {self.bound:g}"


@dataclass(frozen=True)
class LessThan:
    """value < bound."""

    bound: float

    def admits(self, value: float) -> bool:
        return value < self.bound

    def __str__(self) -> str:
        return f"less than {self.bound:g}"


Limit = AtLeast | MoreThan | LessThan

Count = Annotated[int, AtLeast(1)]
Positive = Annotated[float, MoreThan(0)]
NotNegative = Annotated[float, AtLeast(0)]
