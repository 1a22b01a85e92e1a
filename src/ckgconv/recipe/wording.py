"""Values that are not what a field declares, in words: one sentence, or half of one, for all that pydantic found."""

from collections.abc import Sequence
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ckgconv.checks import shown
from ckgconv.recipe.kinds import kinds_of
from ckgconv.registry import nearest

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", NoneType: "null"}
MISSING, UNKNOWN = "missing", "unexpected_keyword_argument"

Place = tuple[int | str, ...]


def describe(kind: Any) -> str:
    """The values that an annotation admits, in words."""
    origin, choices = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return describe(choices[0])
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in choices)
    if origin in (Union, UnionType):
        return " or ".join(describe(choice) for choice in choices)
    if origin in (tuple, list):
        return "a list" if is_dataclass(choices[0]) else f"a list of {describe(choices[0])}"
    return WORDS.get(kind, "a group of values")


def sentence(error: ValidationError, kind: Any, where: str) -> str:
    """What is wrong, and what to give instead; `where` names the whole of the values."""
    first, place, inner = _first(error, kind)
    path = _path(place, where)
    if first["type"] == UNKNOWN:
        name = str(first["loc"][-1])
        return f"{path} has no value {shown(name)}: {nearest(name, list(kinds_of(inner)))}"
    if first["type"] == MISSING:
        missing = [str(each["loc"][-1]) for each in error.errors() if _is_beside(each, first)]
        return f"{_path(place[:-1], where)} lacks {', '.join(missing)}: add what is missing."
    return f"{path} is {_found(first)}: give {_wanted(first, inner)}."


def half_sentence(error: ValidationError, kind: Any, where: str = "") -> str:
    """What is wrong, for the brackets of a sentence that names the file."""
    first, place, inner = _first(error, kind)
    path = _path(place, where)
    if first["type"] == UNKNOWN:
        return f"{path or 'it'} has no value {shown(first['loc'][-1])}"
    if first["type"] == MISSING:
        return f"it lacks {path}"
    return f"{path or 'it'} is {_found(first)}, not {_wanted(first, _not_null(inner))}"


def _first(error: ValidationError, kind: Any) -> tuple[ErrorDetails, Place, Any]:
    """What to name of all that was found: a name that does not exist before all else, since it may be a typo."""
    found = error.errors(include_url=False)
    beside = [each for each in found if each["loc"][:-1] == found[0]["loc"][:-1]]
    # A bound says more than that the other choices of a union are not met.
    outside = next((each for each in beside if _bound(each)), found[0])
    first = next((each for each in found if each["type"] == UNKNOWN), outside)
    place: list[int | str] = []
    for step in first["loc"]:
        inner = _inside(kind, step)
        if inner is None:  # pydantic also names the choice of a union
            break
        kind = inner
        place.append(step)
    return first, tuple(place), kind


def _inside(kind: Any, step: int | str) -> Any:
    """The annotation of a value in one of another annotation; None where it has none."""
    origin, choices = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _inside(choices[0], step)
    if origin in (Union, UnionType):
        parts = [choice for choice in choices if choice is not NoneType]
        return _inside(parts[0], step) if len(parts) == 1 else None
    if origin in (tuple, list) and isinstance(step, int):
        return choices[0]
    if origin is dict:
        return choices[1]
    return kinds_of(kind).get(str(step)) if is_dataclass(kind) and isinstance(kind, type) else None


def _found(error: ErrorDetails) -> str:
    value = error["input"]
    return f"{value:g}" if isinstance(value, float) and _bound(error) else shown(value)


def _wanted(error: ErrorDetails, kind: Any) -> str:
    return _bound(error) or describe(kind)


def _bound(error: ErrorDetails) -> str:
    """The bound that a value is outside of, in words; empty where it is of another type altogether."""
    given = error.get("ctx", {})
    words = {
        "greater_than_equal": lambda: f"at least {given['ge']:g}",
        "greater_than": lambda: f"more than {given['gt']:g}",
        "less_than_equal": lambda: f"at most {given['le']:,}",
        "less_than": lambda: f"less than {given['lt']:g}",
        "too_long": lambda: f"at most {given['max_length']:,} values",
        "too_short": lambda: f"at least {given['min_length']:,} values",
    }
    return words.get(error["type"], lambda: str(given.get("wanted", "")))()


def _not_null(kind: Any) -> Any:
    """What a value has to be where null stands for its absence."""
    parts = [choice for choice in get_args(kind) if choice is not NoneType]
    return parts[0] if get_origin(kind) in (Union, UnionType) and len(parts) == 1 else kind


def _is_beside(error: ErrorDetails, other: ErrorDetails) -> bool:
    return error["type"] == MISSING and error["loc"][:-1] == other["loc"][:-1]


def _path(place: Sequence[int | str], where: str) -> str:
    for step in place:
        name = step if isinstance(step, str) and step.isprintable() and len(step) <= 60 else shown(step)
        where += f"[{step}]" if isinstance(step, int) else f".{name}" if where else name
    return where
