"""JSON objects read field by field into declared types: a field of another type is refused by name, unknown fields are
ignored.
"""

import math
import reprlib
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from ckgconv.checks import InputError, require
from ckgconv.recipe.values import convert, describe

T = TypeVar("T")


class JsonObject:
    """An object as `json.loads` returns it; `name` is its path in error messages, empty for that of a whole file."""

    def __init__(self, values: Any, name: str = "") -> None:
        require(isinstance(values, dict), f"{name or 'it'} is {reprlib.repr(values)}, not a group of values")
        self.values: dict[str, Any] = values
        self.name = name

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def get(self, field: str, kind: type[T], default: T | None = None) -> T:
        """A value of this kind; null for a float is an undefined number and becomes NaN."""
        if field not in self.values and default is not None:
            return default
        require(field in self.values, f"it lacks {self._path(field)}")
        value = self.values[field]
        if kind is float and (value is None or isinstance(value, float)):  # NaN and infinity too
            return cast(T, math.nan if value is None else value)
        try:
            found: T = convert(value, kind, field)
        except InputError as error:
            raise InputError(f"{self._path(field)} is {reprlib.repr(value)}, not {describe(kind)}") from error
        return found

    def get_optional(self, field: str, kind: type[T]) -> T | None:
        """A value of this kind, or None where it is null or absent."""
        return None if self.values.get(field) is None else self.get(field, kind)

    def part(self, field: str) -> "JsonObject":
        """An object inside this one; an empty one where it is absent."""
        return JsonObject(self.values.get(field, {}), self._path(field))

    def parts(self, field: str) -> "list[JsonObject]":
        """A list of objects inside this one; empty where it is absent."""
        items, path = self.values.get(field, []), self._path(field)
        require(isinstance(items, list), f"{path} is {reprlib.repr(items)}, not a list")
        return [JsonObject(item, f"{path}[{index}]") for index, item in enumerate(items)]

    def _path(self, field: str) -> str:
        return f"{self.name}.{field}" if self.name else field
