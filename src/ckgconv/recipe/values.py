"""The one way in which values of files become dataclasses: pydantic reads them by the annotations of the fields.

    SETTINGS    of what a person writes: unknown names are errors, and numbers are finite
    KEPT        of what a program wrote, perhaps a later version: unknown names are ignored, NaN and infinities read

Both are strict: "3" and 3.0 are no whole numbers, true is no number. The dataclasses stay plain ones; a class names its
configuration with `with_config`, and those inside it follow.
"""

import math
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, to_json

from ckgconv.checks import InputError, shown
from ckgconv.recipe.kinds import kinds_of
from ckgconv.recipe.wording import half_sentence, sentence

SETTINGS = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)
KEPT = ConfigDict(strict=True, extra="ignore")
T = TypeVar("T")


class Unreadable(ValueError):
    """A value that JSON does not have, such as half of a character."""


@dataclass(frozen=True)
class ReadAs:
    """In an annotation: how a value is read, where a file may hold more than the type of the field."""

    kind: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.kind)


# A number that may be undefined: null in a file, NaN here.
Number = Annotated[float, ReadAs(float | Annotated[None, AfterValidator(lambda _: math.nan)])]


def convert(values: Any, kind: type[T], where: str) -> T:
    """Values as `parse_json` returns them as an instance of `kind`; `where` begins the sentence of a refusal."""
    try:
        return _read(values, kind)
    except ValidationError as error:
        raise InputError(sentence(error, kind, where)) from None
    except Unreadable as error:
        raise InputError(f"{where} cannot be read ({error}): give a plain value.") from None


def read(values: Any, kind: type[T], where: str = "") -> T:
    """As `convert`, with a refusal for the brackets of a sentence; `where` is the path of the values in their file."""
    try:
        return _read(values, kind)
    except ValidationError as error:
        raise InputError(half_sentence(error, kind, where)) from None
    except Unreadable as error:
        raise InputError(f"{where or 'it'} cannot be read: {error}") from None


def check_recipe(recipe: Any, where: str = "recipe") -> None:
    """Refuse a recipe, or part of one, with values of other types than declared or outside their bounds."""
    if not is_dataclass(recipe):
        raise InputError(f"{where} is {shown(recipe)}: give a recipe.")
    for field, kind in kinds_of(type(recipe)).items():
        value, path = getattr(recipe, field), f"{where}.{field}"
        if not (is_dataclass(kind) and isinstance(kind, type)):
            check_value(value, kind, path)
        elif isinstance(value, kind):
            check_recipe(value, path)
        else:
            raise InputError(f"{path} is {shown(value)}: give a {kind.__name__}.")


def check_value(value: Any, kind: Any, where: str) -> None:
    """Refuse a value given in Python that is not one of an annotation."""
    try:
        _adapter(kind).validate_python(_with_tuples(value))
    except ValidationError as error:
        raise InputError(sentence(error, kind, where)) from None
    _check_plain(value, where)


def _check_plain(value: Any, where: str) -> None:
    """Refuse numbers of numpy, tensors and others, which pydantic takes for floats and no file can hold."""
    if isinstance(value, list | tuple):
        for place, each in enumerate(value):
            _check_plain(each, f"{where}[{place}]")
    if not isinstance(value, int | float) and hasattr(value, "__float__"):
        name = where.rpartition(".")[2]
        raise InputError(f"{where} is {shown(value)}: give a number of Python, such as float({name}).")


def _read(values: Any, kind: type[T]) -> T:
    # As text, since lists and groups of JSON are no tuples and dataclasses in Python; it takes a millisecond.
    try:
        text = to_json(values, inf_nan_mode="constants")
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error).partition("\n")[0]) from None
    found: T = _adapter(kind).validate_json(text)  # type: ignore[arg-type]
    return found


def _with_tuples(value: Any) -> Any:
    """A list stands for a tuple in Python, too."""
    return tuple(_with_tuples(each) for each in value) if isinstance(value, list | tuple) else value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # A dataclass has its own configuration.
    return TypeAdapter(kind) if is_dataclass(kind) else TypeAdapter(kind, config=SETTINGS)
