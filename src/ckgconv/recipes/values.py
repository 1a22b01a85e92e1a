"""Recipes as JSON, and single values of them as text: strict in both, so that a typo is never ignored.

model.width=32      one value of `--set`, by the path of its field
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ckgconv.checks import InputError
from ckgconv.recipe import Recipe

PLAIN: dict[type, tuple[type, ...]] = {
    int: (int,),
    float: (int, float),
    bool: (bool,),
    str: (str,),
    NoneType: (NoneType,),
}


def to_json(recipe: Recipe) -> str:
    """The whole recipe, as a file that `from_json` reads back."""
    return json.dumps(asdict(recipe), indent=1)


def from_json(text: str, where: str) -> Recipe:
    """The recipe of a JSON text; `where` names the file in refusals."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON ({error}): give a recipe.json that a run has written.") from error
    read: Recipe = convert(values, Recipe, where)
    return read


def with_value(recipe: Recipe, assignment: str) -> Recipe:
    """The recipe with one value changed by "path=value"."""
    path, equals, text = assignment.partition("=")
    if not equals:
        raise InputError(f"--set {assignment} has no '=': write it as model.width=32.")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    changed: Recipe = _changed(recipe, path.split("."), value, path)
    return changed


def check_recipe(recipe: Any) -> None:
    """Refuse a recipe, or part of one, whose values are not of their declared kinds."""
    convert(asdict(recipe), type(recipe), "recipe")


def convert(value: Any, kind: Any, where: str) -> Any:
    """`value` as read from JSON, as an instance of the annotated `kind`."""
    if is_dataclass(kind):
        return _dataclass(value, kind, where)
    origin, choices = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(value, choices, where)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(convert(item, choices[0], f"{where}[{place}]") for place, item in enumerate(value))
    if origin is Literal and value in choices:
        return value
    plain: tuple[type, ...] = PLAIN.get(kind, ())
    if isinstance(value, bool) and kind is not bool:
        plain = ()
    if type(value) in plain:
        return float(value) if kind is float else value
    raise InputError(f"{where} is {value!r}: give {describe(kind)}.")


def describe(kind: Any) -> str:
    """What a value may be, in words."""
    origin, choices = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in choices)
    if origin in (Union, UnionType):
        return " or ".join(describe(choice) for choice in choices)
    if origin is tuple:
        return f"a list of {describe(choices[0])}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", NoneType: "null"}
    return words.get(kind, "a group of values")


def nearest(name: str, names: list[str], prefix: str = "") -> str:
    """A hint at the end of a refusal."""
    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {prefix}{near[0]}?"
    return "choose one of " + ", ".join(prefix + each for each in names) + "."


def _dataclass(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} is {value!r}: give a group of values.")
    kinds = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    for name in value:
        if name not in names:
            raise InputError(f"{where} has no value {name!r}: {nearest(name, names)}")
    try:
        return kind(**{name: convert(item, kinds[name], f"{where}.{name}") for name, item in value.items()})
    except TypeError as error:
        missing = [name for name in names if name not in value]
        raise InputError(f"{where} lacks {', '.join(missing)}: give a whole recipe.") from error


def _one_of(value: Any, choices: tuple[Any, ...], where: str) -> Any:
    for choice in choices:
        try:
            return convert(value, choice, where)
        except InputError:
            continue
    raise InputError(f"{where} is {value!r}: give {' or '.join(describe(choice) for choice in choices)}.")


def _changed(part: Any, path: list[str], value: Any, whole: str) -> Any:
    name, *rest = path
    names = [field.name for field in fields(part)]
    prefix = whole.removesuffix(".".join(path))
    if name not in names:
        raise InputError(f"{whole} is no value of a recipe: {nearest(name, names, prefix)}")
    current = getattr(part, name)
    if rest:
        if not is_dataclass(current):
            raise InputError(f"{whole} is no value of a recipe: {prefix}{name} has no parts.")
        return replace(part, **{name: _changed(current, rest, value, whole)})
    kind = get_type_hints(type(part))[name]
    if is_dataclass(kind):
        inside = nearest("", [field.name for field in fields(kind)], f"{whole}.")
        raise InputError(f"{whole} is a group of values: {inside}")
    return replace(part, **{name: convert(value, kind, whole)})
