"""What a door of the library is to the runner: cases as bytes, and how a case is handed in."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True)
class Door:
    """One way into the library.

    Args:
        cases: strategy of cases, each as bytes, so that a failure can be kept as a file.
        enter: hands a case to the library, in an empty folder. It returns where the library gave a result, and lets
            InputErrors pass; a result that cannot be right raises AssertionError.
    """

    name: str
    cases: SearchStrategy[bytes]
    enter: Callable[[bytes, Path], None]
