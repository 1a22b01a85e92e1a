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


@dataclass(frozen=True)
class AtMost:
    """value ≤ bound."""

    bound: float

    def admits(self, value: float) -> bool:
        return value <= self.bound

    def __str__(self) -> str:
        return f"at most {self.bound:,}"


@dataclass(frozen=True)
class Names:
    """A text that can be the name of a folder, and be printed: no separator, no control character, not hidden."""

    longest: int = 240

    def admits(self, value: str) -> bool:
        usable = value.isprintable() and not any(mark in value for mark in "/\\")
        return usable and 0 < len(value) <= self.longest and value[0] not in ". -" and value[-1] != " "

    def __str__(self) -> str:
        return f"a name of at most {self.longest} characters, without '/' and not beginning with '.' or '-'"


def usable_name(text: str, other: str) -> str:
    """A name as near to a text as `Names` admits; `other` where nothing of it is left."""
    plain = "".join(each if each.isprintable() and each not in "/\\" else "_" for each in text)
    return plain.lstrip(". -")[: Names.longest].rstrip() or other


@dataclass(frozen=True)
class NoLonger:
    """A list with at most this many values."""

    bound: int

    def admits(self, value: tuple[object, ...]) -> bool:
        return len(value) <= self.bound

    def __str__(self) -> str:
        return f"at most {self.bound:,} values"


Limit = AtLeast | AtMost | MoreThan | LessThan | Names | NoLonger

# The upper bounds are far beyond any use. They keep a slip of the keyboard from building layers for hours; what fits
# into memory is asked before a network is built.
Name = Annotated[str, Names()]
Count = Annotated[int, AtLeast(1), AtMost(10**9)]
Whole = Annotated[int, AtLeast(0), AtMost(10**9)]
Width = Annotated[int, AtLeast(1), AtMost(2**16)]
Depth = Annotated[int, AtLeast(1), AtMost(1000)]
Channels = Annotated[int, AtLeast(0), AtMost(2**16)]
Steps = Annotated[int, AtLeast(0), AtMost(10_000)]
Positive = Annotated[float, MoreThan(0)]
NotNegative = Annotated[float, AtLeast(0)]
