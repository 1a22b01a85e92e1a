"""Values as JSON has them → dataclasses, by the annotations of their fields; strict, so that no typo is ignored."""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ckgconv.checks import InputError
from ckgconv.recipe.limits import Limit
from ckgconv.registry import nearest

# Annotation → types of the values that it accepts.
PLAIN: dict[type, tuple[type, ...]] = {
    int: (int,),
    float: (int, float),
    bool: (bool,),
    str: (str,),
    NoneType: (NoneType,),
}
# How values appear in messages: a few of many, and the beginning of a long text.
SHORT = reprlib.Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother, SHORT.maxlong = 3, 120, 120, 60
# Declared dataclass → the subclass to create in its place, such as the recipe of a kind of model.
Subclasses = Mapping[type, type]


def check_recipe(recipe: Any, where: str = "recipe") -> None:
    """Refuse a recipe, or part of one, with values of other types than declared or outside their bounds."""
    for field, kind in kinds_of(type(recipe)).items():
        value, path = getattr(recipe, field), f"{where}.{field}"
        if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, kind):
            check_recipe(value, path)
        else:
            convert(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value, kind, path)


def kinds_of(part: type) -> dict[str, Any]:
    """Annotation of each field of a dataclass."""
    hints = get_type_hints(part, include_extras=True)
    return {field.name: hints[field.name] for field in fields(part)}


def convert(value: Any, kind: Any, where: str, subclasses: Subclasses | None = None) -> Any:
    """A value read from JSON as an instance of the annotation `kind`; `where` names it in error messages."""
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(value, (subclasses or {}).get(kind, kind), where, subclasses)
    origin, choices = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _within(convert(value, choices[0], where), choices[1:], where)
    if origin in (Union, UnionType):
        return _one_of(value, choices, where)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(convert(item, choices[0], f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Literal and type(value) in (str, int) and value in choices:
        return value
    plain: tuple[type, ...] = PLAIN.get(kind, ())
    if isinstance(value, bool) and kind is not bool:
        plain = ()
    if type(value) in plain and (kind is not float or _is_finite(value)):
        return float(value) if kind is float else value
    raise InputError(f"{where} is {shown(value)}: give {describe(kind)}.")


def shown(value: Any) -> str:
    """A value in an error message, cut short where it is long."""
    try:
        return SHORT.repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"


def describe(kind: Any) -> str:
    """The values that an annotation admits, in words."""
    origin, choices = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return describe(choices[0])
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in choices)
    if origin in (Union, UnionType):
        return " or ".join(describe(choice) for choice in choices)
    if origin is tuple:
        return f"a list of {describe(choices[0])}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", NoneType: "null"}
    return words.get(kind, "a group of values")


def _within(value: Any, limits: tuple[Limit, ...], where: str) -> Any:
    for limit in limits:
        if not limit.admits(value):
            found = f"{value:g}" if isinstance(value, float) else shown(value)
            raise InputError(f"{where} is {found}: give {limit}.")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def _dataclass(value: Any, kind: Any, where: str, subclasses: Subclasses | None) -> Any:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} is {shown(value)}: give a group of values.")
    kinds = kinds_of(kind)
    for name in value:
        if name not in kinds:
            raise InputError(f"{where} has no value {shown(name)}: {nearest(name, list(kinds))}")
    try:
        return kind(**{name: convert(item, kinds[name], f"{where}.{name}", subclasses) for name, item in value.items()})
    except TypeError as error:
        required = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
        missing = [name for name in required if name not in value]
        raise InputError(f"{where} lacks {', '.join(missing)}: add what is missing.") from error


def _one_of(value: Any, choices: tuple[Any, ...], where: str) -> Any:
    for choice in choices:
        try:
            return convert(value, choice, where)
        except InputError:
            continue
    raise InputError(f"{where} is {shown(value)}: give {' or '.join(describe(choice) for choice in choices)}.")
